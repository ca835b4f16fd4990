import type { MembershipState } from "@rollcall/domain";
import type { UngrantedWish } from "./wish-log.ts";

/** What an agent is about. */
export type AgentPhase =
  | "starting"
  | "registering"
  | "connecting"
  | "connected"
  /** Between attempts. */
  | "waiting"
  /** Deleted by an operator: it does nothing until it is started again. */
  | "idle"
  | "closed";

/** The state of an agent. */
export interface AgentStatus {
  readonly phase: AgentPhase;
  readonly nodeId: string;
  /** The health replica that holds the stream. */
  readonly endpoint: string | undefined;
  readonly sessionEpoch: bigint | undefined;
  /** What the operators decided, as far as the agent knows. */
  readonly membership: MembershipState | undefined;
  /** Intervals of this machine's configuration that have no effect, since its health policy says otherwise. */
  readonly ungrantedWishes: readonly UngrantedWish[];
}
