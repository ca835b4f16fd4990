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
  /** The shortest time between batches that are not full. The first hello after a pause does not wait. */
  readonly gatherMs: number;
  /** Limits failed proofs of identity; no limit when absent. */
  readonly failures?: FailedAttempts | undefined;
  /** Limits how many hellos are admitted in a second. */
  readonly admission: HelloAdmission;
  /** Where agents go when they are sent away. */
  readonly reconnects: Reconnects;
  /** Called when the record may have opened sessions that this process does not know. */
  readonly onUncertain: () => void;
  /** Resolves once the policy of each node is known. */
  readonly policiesKnown: () => Promise<void>;
  /** Verifies the proof of a Hello; by its signature when absent. */
  readonly isSigned?: ProofCheck;
  /** Resolves after all other work had a turn; by Node's event loop when absent. */
  readonly nextTurn?: () => Promise<void>;
}
