// Keeps the page up to date: hears that something has changed, and loads that part of it again.
"use strict";

const live = document.getElementById("live");
let events = null;
let waiting = false;

function isInUse() {
  const active = document.activeElement;
  return live.contains(active) && active.matches("input, select");
}

async function reload() {
  if (isInUse()) {
    waiting = true;
    return;
  }
  waiting = false;
  const response = await fetch(location.href);
  if (response.redirected) {
    location.reload();
    return;
  }
  const text = await response.text();
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("live");
  if (!fresh) {
    location.reload();
    return;
  }
  if (isInUse()) {
    waiting = true;
    return;
  }
  const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
  for (const each of live.querySelectorAll("details[id]")) {
    const same = fresh.querySelector("#" + CSS.escape(each.id));
    if (same) same.open = each.open;
  }
  live.replaceChildren(...fresh.childNodes);
  const again = focused && document.getElementById(focused);
  if (again) again.focus();
}

function connect() {
  // A browser opens six connections to a host: pages that nobody looks at take none.
  if (document.hidden) {
    if (events) events.close();
    events = null;
  } else if (!events) {
    events = new EventSource(live.dataset.events);
    events.addEventListener("changed", () => reload().catch(() => {}));
  }
}

if (live) {
  document.addEventListener("visibilitychange", () => {
    const was = events;
    connect();
    if (!was && events) reload().catch(() => {});
  });
  live.addEventListener("focusout", () => {
    if (waiting) setTimeout(() => reload().catch(() => {}));
  });
  window.addEventListener("pagehide", () => events && events.close());
  connect();
}
