import type { MembershipState } from "@rollcall/domain";
import type { UngrantedWish } from "./wish-log.ts";

/** The current activity of an agent. */
export type AgentPhase =
  | "starting"
  | "registering"
  | "connecting"
  | "connected"
  /** Between attempts. */
  | "waiting"
  /** An operator deleted the node: the agent is idle until it is restarted. */
  | "idle"
  | "closed";

export interface AgentStatus {
  readonly phase: AgentPhase;
  readonly nodeId: string;
  /** The health replica that holds the stream. */
  readonly endpoint: string | undefined;
  readonly sessionEpoch: bigint | undefined;
  /** Whether operators have admitted the node, as far as the agent knows. */
  readonly membership: MembershipState | undefined;
  /**
   * Intervals in this machine's configuration that have no effect because its health policy overrides them.
   */
  readonly ungrantedWishes: readonly UngrantedWish[];
}
