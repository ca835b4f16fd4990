/** A kit that breaks one rule, with the scenario that must detect the broken rule. */
export interface BrokenKit {
  readonly rule: string;
  /** A file of the kit for Python. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly scenario: string;
}

/** One broken kit for each part of the kit. */
export const BROKEN_KITS: readonly BrokenKit[] = [
  {
    rule: "signs another text",
    file: "proof.py",
    from: '"rollcall-proof-v1"',
    to: '"rollcall-proof-v2"',
    scenario: "first-start",
  },
  {
    rule: "leaves out sequences",
    file: "session_machine.py",
    from: "sequence=told.sequence + 1",
    to: "sequence=told.sequence + 2",
    scenario: "first-start",
  },
  {
    rule: "beats too often",
    file: "session_machine.py",
    from: "state.last_beat_at_ms + state.pace.heartbeat_ms",
    to: "state.last_beat_at_ms + state.pace.heartbeat_ms / 2",
    scenario: "first-start",
  },
  {
    rule: "tells the digest of no report",
    file: "stream.py",
    from: "executions_digest=self._told_digest",
    to: "executions_digest=7",
    scenario: "first-start",
  },
  {
    rule: "fights over its session",
    file: "next_step.py",
    from: "_SUPERSEDED_RETRY_MS = 30_000.0",
    to: "_SUPERSEDED_RETRY_MS = 500.0",
    scenario: "epoch-fenced",
  },
  {
    rule: "comes back before it was told",
    file: "next_step.py",
    from: "return given + at.backoff",
    to: "return 0.0",
    scenario: "go-away-reconnect",
  },
  {
    rule: "leaves its stream before the next one is welcomed",
    file: "session_machine.py",
    from: "if frame.go_away.action != _MOVE or",
    to: "if True or",
    scenario: "go-away-move",
  },
  {
    rule: "remembers that it was deleted as a registration",
    file: "kit.py",
    from: 'self._on_disk("sentinel cannot be removed", self.identity.remove_sentinel)',
    to: "pass",
    scenario: "go-away-deleted",
  },
  {
    rule: "forgets the key that it offered",
    file: "state_dir.py",
    from: "next_key = self._add(_read_key(self.directory / _NEXT_KEY_FILE))",
    to: "next_key = None",
    scenario: "rotation-cut-short",
  },
  {
    rule: "takes an older list for a newer one",
    file: "desired_work.py",
    from: "if is_same_log and frame.generation < self.generation:",
    to: "if False:",
    scenario: "work-older-generation",
  },
  {
    rule: "lets a restored record stop what it has not heard of",
    file: "desired_work.py",
    from: "if one is None or (not is_ended and one.log_id == desired.log_id):",
    to: "if one is None or not is_ended:",
    scenario: "work-of-another-log",
  },
  {
    rule: "starts again what its machine has lost",
    file: "desired_work.py",
    from: "(reference.reported or key in had)",
    to: "False",
    scenario: "work-never-started",
  },
  {
    rule: "runs a spec with another digest",
    file: "ledger.py",
    from: "if frame.spec and hashlib.sha256(frame.spec).digest() != frame.digest:",
    to: "if False:",
    scenario: "work-spec-wrong",
  },
  {
    rule: "says that it stops for good while executions run",
    file: "stream.py",
    from: "health_pb2.GOODBYE_KIND_RESTARTING if effect.leaves_work else health_pb2.GOODBYE_KIND_STOPPING",
    to: "health_pb2.GOODBYE_KIND_STOPPING",
    scenario: "work-leaves",
  },
];
