"""Builds in processes of their own, which can be ended: a build that hangs, dies or takes all
memory holds up no other."""
