"""Decides how each slice is read, from what a query says and what manifests know. Each reason
against reading a slice through its index has a name, the rule, which EXPLAIN shows."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexRequired, NotCovered
from hudi_index_service.optimizer.cost.constants import LARGE_FILE, MIB
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.decide import index_pays
from hudi_index_service.optimizer.estimates import ManifestEstimates, estimated_rows
from hudi_index_service.optimizer.expected import RowEstimate, between
from hudi_index_service.optimizer.history.history import history_of
from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.optimizer.plan import (
    BY_COST,
    BY_HISTORY,
    NOT_COVERED,
    OTHERS,
    PATH_RULES,
    Access,
    QueryPlan,
    SlicePlan,
)
from hudi_index_service.optimizer.serving import narrows
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate
from hudi_index_service.predicate.fold import conjuncts
from hudi_index_service.predicate.simplify import simplified

EXCLUDED = "excluded_by_statistics"
"""The rule that skips slices by the minimum, maximum and NULL count in the manifests of entries."""

_COVERAGE, _NO_USABLE_INDEX, _OR_ARM = "coverage", "no_usable_index", "or_arm_without_index"
"""The rules by which no entry serves a slice that may have rows."""

_SWITCHED_OFF = "index_switched_off"
_CONTRADICTION, _PRUNED = PATH_RULES

_Reason = tuple[str, str]
"""Why slices are not read through an index, and the rule."""


def optimize(
    plan: QueryPlan,
    settings: Settings,
    find_entries: Callable[[QueryPlan], QueryPlan],
    exclude: Callable[[QueryPlan], QueryPlan] = lambda plan: plan,
) -> QueryPlan:
    """Plans how each slice is read. Only cost and history depend on the machine and on the past.

    Args:
        plan: The first plan: all slices are read by index.
        find_entries: Finds the entries of the slices to be read by index; slices without entries
            are scanned. It gets a plan without the slices that are skipped.
        exclude: Skips slices that cannot match, before entries are found.

    Raises:
        IndexRequired: the caller requires the index, and a slice would be read without it.
        NotCovered: see `_covered_only`.
    """
    plan = _without_entries(plan)
    if plan.uses_index:
        plan = exclude(plan)
    # A query for one value leaves few of a table's thousands of slices.
    every_slice, left = plan, plan.left()
    plan = replace(plan, slices=tuple([plan.slices[number] for number in left]))
    if plan.uses_index:
        plan = find_entries(plan)
    plan = _with_entries(plan, every_slice, settings)
    if plan.use_index == "require":
        unindexed = next((each for each in plan.slices if each.access in OTHERS), None)
        if unindexed is not None:
            raise IndexRequired(
                f"{unindexed.file_slice.name} cannot be read through an index: {unindexed.reason}."
            )
    return plan.with_skipped(every_slice, left)


def _without_entries(plan: QueryPlan) -> QueryPlan:
    """The plan by the predicate and the partitions' paths alone. Conjuncts that others imply are
    dropped; the residual on the rows read is the predicate as written."""
    predicate, skipped = plan.predicate, None
    if predicate is not None and predicate.children:
        predicate = simplified(predicate)
    if isinstance(predicate, Constant) and predicate.value is not True:
        reason = "the predicate is TRUE for no row"
        skipped = [each.skipped(reason, _CONTRADICTION) for each in plan.slices]
    elif plan.partitions is not None and (pruned := plan.partitions.ruled_out(predicate)):
        reason = "the partition's path rules the predicate out"
        skipped = [
            each if each.file_slice.partition not in pruned else each.skipped(reason, _PRUNED)
            for each in plan.slices
        ]
    if skipped is None and predicate is plan.predicate:
        return plan
    return replace(plan, predicate=predicate, slices=tuple(skipped or plan.slices))


def _with_entries(plan: QueryPlan, every_slice: QueryPlan, settings: Settings) -> QueryPlan:
    """The plan by the slices' entries."""
    declined = _reason_to_scan(plan, settings)
    if declined is not None:
        if plan.asks_coverage:
            raise no_index_serves(declined[0])
        return _scanned(plan, *declined)
    assert plan.predicate is not None, "else there is a reason"
    if not plan.uses_index:
        return _covered_only(plan, every_slice)
    estimates = ManifestEstimates(plan.predicate, plan.partitions)
    rows = [estimates.rows(each) if each.access is Access.INDEX else None for each in plan.slices]
    plan = _covered_only(_with_useful_entries(plan, plan.predicate, rows), every_slice)
    declined = _reason_of_size(plan, settings)
    if declined is not None:
        return _scanned(plan, *declined)
    return _by_cost(_most_selective_first(plan), rows, settings)


def _scanned(plan: QueryPlan, reason: str, rule: str) -> QueryPlan:
    return replace(
        plan,
        slices=tuple(
            each.declined(reason, rule) if each.access is Access.INDEX else each
            for each in plan.slices
        ),
    )


# --- the whole table -------------------------------------------------------------------------


def _reason_to_scan(plan: QueryPlan, settings: Settings) -> _Reason | None:
    """Why no entry is opened at all.

    `read.max_predicates` is RFC-51's own example of a rule: "SQL with more than 10 predicates does
    not push down to use secondary index, but uses the existing scanning logic".
    """
    if plan.use_index == "never":
        return 'the query says use_index="never"', _SWITCHED_OFF
    if plan.switched_off:
        return (
            "the table switches its indexes off (hudi-index disable, "
            "or hoodie.index.read.enabled=false)"
        ), _SWITCHED_OFF
    if not settings.read.enabled:
        return "the settings switch indexes off (read.enabled=false)", _SWITCHED_OFF
    if plan.predicate is None:
        return "the query has no predicate", "no_predicate"
    leaves, most = sum(1 for _ in plan.predicate.leaves()), settings.read.max_predicates
    if leaves > most:
        reason = f"{leaves} predicates are more than read.max_predicates={most}"
        return reason, "too_many_predicates"
    return None


def _reason_of_size(plan: QueryPlan, settings: Settings) -> _Reason | None:
    """Why an index is not worth asking by the bytes of base files, of those to be read."""
    mb, share = settings.read.min_table_mb, settings.read.min_coverage
    if plan.use_index == "require" or not (mb or share):
        return None
    covered, others = plan.size(Access.INDEX), plan.size(*OTHERS)
    if covered + others < mb * MIB:
        reason = f"the base files to be read have less than read.min_table_mb={mb:g}"
        return reason, "small_table"
    if covered < share * (covered + others):
        served = f"{covered / (covered + others):.0%}"
        reason = f"entries serve {served} of the bytes, less than {share:.0%} (read.min_coverage)"
        return reason, "low_coverage"
    return None


# --- entries that exclude a slice, or are of no use ------------------------------------------


def exclusion_reason(index_types: Sequence[str]) -> str:
    """Why a slice is skipped by the statistics of its entries of these types."""
    return f"its {' and '.join(index_types)} entry's statistics rule the predicate out"


def _with_useful_entries(
    plan: QueryPlan, predicate: Predicate, estimates: Sequence[RowEstimate | None]
) -> QueryPlan:
    """The plan without the slices in which no row can match, and without entries that narrow
    nothing, which are not worth opening."""
    reasons: dict[Hashable, _Reason | None] = {}
    """By the layouts of entries, which most slices of a table share."""

    def planned(each: SlicePlan, rows: RowEstimate | None) -> SlicePlan:
        if each.access is not Access.INDEX:
            return each
        if rows is not None and not rows.most:
            names = [entry.index_type.name for entry in each.entries]
            return each.without_base_rows(exclusion_reason(names), EXCLUDED)
        layouts = tuple([entry.layout for entry in each.entries])
        if layouts not in reasons:
            reasons[layouts] = _useless(predicate, each)
        declined = reasons[layouts]
        if declined is None:
            return each
        reason, rule = declined
        if rule == _NO_USABLE_INDEX:
            reason = _lacking(each, predicate) or reason
        return each.declined(reason, rule)

    slices = [planned(each, rows) for each, rows in zip(plan.slices, estimates, strict=True)]
    return replace(plan, slices=tuple(slices))


def _useless(predicate: Predicate, plan: SlicePlan) -> _Reason | None:
    """Why every row of a slice remains a candidate; None if its entries narrow the predicate."""
    if narrows(predicate, plan.entries):
        return None
    for each in conjuncts(predicate):
        arms = each.operands if isinstance(each, Or) else ()
        missing = [arm for arm in arms if not narrows(arm, plan.entries)]
        if len(missing) < len(arms):
            # Without literals: search terms must not appear in the log.
            columns = sorted(frozenset[str]().union(*(arm.columns() for arm in missing)))
            reason = f"an OR has an arm on {', '.join(columns)} that no index answers"
            return reason, _OR_ARM
    return "no index narrows the predicate", _NO_USABLE_INDEX


def _lacking(plan: SlicePlan, predicate: Predicate) -> str | None:
    """Which column of a predicate an entry lacks, although it was defined; None if none."""
    for serving in plan.entries:
        for each in serving.entry.manifest.skipped:
            if each.name in predicate.columns():
                return (
                    f"its {serving.index_type.name} entry lacks column {each.name}, which only "
                    "Spark reads in this base file"
                )
    return None


# --- queries that ask what indexes cover -----------------------------------------------------


def no_index_serves(reason: str) -> IndexRequired:
    """The error of a query that asks what is covered, of which indexes cover nothing."""
    return IndexRequired(
        f"No index can serve the query: {reason}.",
        remedy="Ask without fast and only_if_covered_to, for a scan.",
    )


def _covered_only(plan: QueryPlan, every_slice: QueryPlan) -> QueryPlan:
    """The plan of a query that asks what is covered: for the covered rows alone (`fast`), which is
    without uncovered slices, or for an answer only if each base file up to an instant is covered.
    The same plan of any other query.

    Of such a query a slice is covered if its base file has an entry that narrows the predicate,
    whether or not a scan of it is cheaper: so the same rows are left out whatever costs are
    estimated. A slice in which no row can match, by its partition or by its entry, counts as
    covered. Rows in log files are those of their slice.

    Args:
        plan: The slices that may have rows, those with entries that narrow the predicate planned by
            index.
        every_slice: The plan of all slices before entries were looked for.

    Raises:
        NotCovered: a base file up to the instant asked for is not covered.
        IndexRequired: no entry of any base file narrows the predicate, though there are some.
    """
    uncovered = [each for each in plan.slices if _is_uncovered(each)] if plan.asks_coverage else []
    if not uncovered:
        return plan
    useless = next((each for each in uncovered if each.rejected_entries), None)
    if useless is not None and not _is_answered(plan, every_slice):
        raise no_index_serves(useless.reason)
    if plan.covered_to is not None:
        _require_covered(plan, min(each.file_slice.base_file.instant for each in uncovered))
    if not plan.fast:
        return plan
    slices = (
        each.skipped(f"left out: {each.reason}", NOT_COVERED) if _is_uncovered(each) else each
        for each in plan.slices
    )
    return replace(plan, slices=tuple(slices))


def _is_uncovered(plan: SlicePlan) -> bool:
    return plan.access in OTHERS and plan.rule in (_COVERAGE, _NO_USABLE_INDEX, _OR_ARM)


def _is_answered(plan: QueryPlan, every_slice: QueryPlan) -> bool:
    """Whether an entry of any slice narrows the predicate, or has excluded it."""
    return any(not _is_uncovered(each) for each in plan.slices) or any(
        each.access in (Access.SKIP, Access.LOGS) and each.rule not in PATH_RULES
        for each in every_slice.slices
    )


def _require_covered(plan: QueryPlan, uncovered: str) -> None:
    """Raises NotCovered if an uncovered base file is not newer than the instant asked for.

    Args:
        uncovered: The instant that wrote the first of them.
    """
    assert plan.covered_to is not None
    if uncovered > plan.covered_to:
        return
    instants = {each.instant for each in plan.snapshot.base_files()}
    covered = max((each for each in instants if each < uncovered), default=None)
    so_far = "of no base file" if covered is None else f"of base files up to instant {covered}"
    raise NotCovered(
        f"The table is not covered up to instant {plan.covered_to}: there are entries {so_far}, "
        f"but not of each that instant {uncovered} wrote."
    )


# --- cost, and what past queries had ---------------------------------------------------------


def _most_selective_first(plan: QueryPlan) -> QueryPlan:
    """The plan with the conjuncts of an AND in the order of their expected rows in a slice: later
    ones are looked up only while that costs less than reading the remaining rows. For large files,
    the index itself gives the steps of each look-up (`read/slices/lookups.py`)."""
    predicate = plan.predicate
    typical = next((each for each in plan.slices if each.access is Access.INDEX), None)
    if not isinstance(predicate, And) or typical is None or typical.total >= LARGE_FILE:
        return plan

    def rows(conjunct: Predicate) -> float:
        estimate = estimated_rows(typical, conjunct)
        return float("inf") if estimate is None else estimate.expected

    return replace(plan, predicate=And(tuple(sorted(predicate.operands, key=rows))))


def _by_cost(
    plan: QueryPlan, estimates: Sequence[RowEstimate | None], settings: Settings
) -> QueryPlan:
    """Estimates the cost of every slice that has an entry, and scans where that is cheaper, unless
    the index is required. Nothing is opened there. Of several index types, the fastest is tried
    first. The costs are compared again while reading, once the rows are known (`decide.py`).

    Expected rows are corrected by what past queries of the same shape had (RFC-51: "gradually
    expand and improve CBO and HBO based on the collected statistical information"). Only rows are,
    which are counted: times depend on the machine's load, and pages follow from the rows.
    """
    history = history_of(settings) if plan.table and plan.uses_index else None
    shape = "" if history is None else query_shape(plan.predicate)
    past = None if history is None else history.shape(plan.table, shape)
    factor = None if past is None else past.correction
    model = CostModel.of(plan, settings)

    def planned(each: SlicePlan, rows: RowEstimate | None) -> SlicePlan:
        if each.access is not Access.INDEX or rows is None:
            return each
        if len(each.entries) > 1:
            # Sorting is stable: equals keep their order.
            entries = tuple(sorted(each.entries, key=model.first_result_ms))
            each = each._replace(entries=entries)
        if factor is None:
            expected = model.expected(each, rows)
        else:
            corrected = between(rows.least, rows.expected * factor, rows.most)
            expected = model.expected(each, corrected)._replace(guessed=rows.expected)
        if plan.use_index == "require" or index_pays(model, each, expected):
            return each._replace(expected=expected)
        # Without the slice's numbers, since EXPLAIN counts slices by their reason.
        reason, rule = "a scan is cheaper than reading these rows through the index", BY_COST
        if past is not None and index_pays(model, each, model.expected(each, rows)):
            queries = f"{past.sums['queries']:.0f} queries of this shape"
            reason, rule = f"a scan is cheaper according to {queries}", BY_HISTORY
        return each.declined(reason, rule, expected)

    slices = [planned(each, rows) for each, rows in zip(plan.slices, estimates, strict=True)]
    return replace(plan, shape=shape, slices=tuple(slices))
