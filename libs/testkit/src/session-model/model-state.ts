import type { SessionState } from "@rollcall/domain";

/** One of two replicas. */
export type ReplicaIndex = 0 | 1;

/** One stream of the node's agent, or of another process with its identity. */
export interface ModelStream {
  readonly replica: ReplicaIndex;
  state: SessionState;
  /** Frames on their way: 0 is the Hello, a Beat is its sequence. They arrive in any order, and are lost or doubled. */
  frames: number[];
  /** Beats that took effect. */
  effects: number[];
  /** Whether its end has come. */
  hasEnded: boolean;
}

/** What a replica remembers of the node. */
export interface ModelReplica {
  held: { epoch: number; stream: number | null; health: "HEALTHY" | "UNHEALTHY" } | null;
  /** Up to where it has read the log of owners. */
  read: number;
}

/** A call of the record, on its way there or back. */
export type ModelCall =
  | {
      readonly kind: "open";
      readonly replica: ReplicaIndex;
      readonly stream: number;
      epoch: number | null;
    }
  | { readonly kind: "adopt"; readonly replica: ReplicaIndex; epoch: number | null }
  | {
      readonly kind: "write";
      readonly replica: ReplicaIndex;
      readonly epoch: number;
      readonly health: string;
    };

/** Everything there is. */
export interface ModelState {
  streams: ModelStream[];
  replicas: [ModelReplica, ModelReplica];
  calls: ModelCall[];
  leases: [boolean, boolean];
  record: { epoch: number; owner: ReplicaIndex | null; health: string };
  /** Who was given each epoch, from the first on. */
  owners: ReplicaIndex[];
  /** The last write that took effect in the record. */
  written: { replica: ReplicaIndex; epoch: number } | null;
}

/** Nothing has happened yet. */
export function initialState(): ModelState {
  const replica = (): ModelReplica => ({ held: null, read: 0 });
  return {
    streams: [],
    replicas: [replica(), replica()],
    calls: [],
    leases: [true, true],
    record: { epoch: 0, owner: null, health: "UNKNOWN" },
    owners: [],
    written: null,
  };
}
