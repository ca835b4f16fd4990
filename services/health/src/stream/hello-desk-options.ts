import type { HelloAdmission } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import type { FailedAttempts, RequestValidator } from "@rollcall/rpc";
import type { HealthMetrics } from "../metrics.ts";
import type { Reconnects } from "../moves/reconnects.ts";
import type { HealthRecord } from "../record/health-record.ts";
import type { Random } from "../replica/farewell.ts";
import type { Replica } from "../replica/replica.ts";
import type { ProofCheck } from "./hello-arrival.ts";

/** What hellos are taken in with. */
export interface HelloDeskOptions {
  readonly record: HealthRecord;
  readonly replica: Replica;
  readonly validator: Pick<RequestValidator, "check">;
  readonly metrics: HealthMetrics;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Most hellos that wait; more are told to come back. Default 2,000. */
  readonly maxQueued?: number;
  /** Shortest time from one batch to the next that is not full. The first hello after a while does not wait. */
  readonly gatherMs: number;
  /** Who fails too often to prove who they are; not limited when absent. */
  readonly failures?: FailedAttempts | undefined;
  /** How many hellos are taken in within a second. */
  readonly admission: HelloAdmission;
  /** Where agents go that are sent away. */
  readonly reconnects: Reconnects;
  /** Called when sessions may have been opened in the record of which this process knows nothing. */
  readonly onUncertain: () => void;
  /** Resolves once it is known which policy each node has. */
  readonly policiesKnown: () => Promise<void>;
  /** Checks the proof of a Hello; by its signature when absent. */
  readonly isSigned?: ProofCheck;
  /** Resolves after everything else has had a turn; by Node's event loop when absent. */
  readonly nextTurn?: () => Promise<void>;
}
