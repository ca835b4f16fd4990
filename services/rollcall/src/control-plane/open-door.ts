import { FailureLimiter, NODE_FAILURE_LIMITS, TOKEN_FAILURE_LIMITS } from "@rollcall/domain";
import { type Clock, FailedAttempts, type Logger, type MetricsRegistry } from "@rollcall/runtime";
import { type CallStore, createRefusalRecorder, type RefusalRecorder } from "@rollcall/store";

/** What all servers of a process share to keep out, and to note down, those who may not come in. */
export interface Door {
  readonly failures: FailedAttempts;
  readonly refusals: RefusalRecorder;
}

export interface DoorOptions {
  readonly store: CallStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
}

/** Open the door of a process. */
export function openDoor(options: DoorOptions): Door {
  const limits = {
    token: new FailureLimiter(TOKEN_FAILURE_LIMITS),
    node: new FailureLimiter(NODE_FAILURE_LIMITS),
  };
  return {
    failures: new FailedAttempts(limits, options.clock),
    refusals: createRefusalRecorder(options),
  };
}
