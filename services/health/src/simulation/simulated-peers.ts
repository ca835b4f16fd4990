import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  GetReplicaStateResponseSchema,
  ProbeNodesResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import type { LiveReplica } from "@rollcall/store";
import { contactsOf } from "../internal/internal-methods.ts";
import type { AskedPeer, PeerList } from "../internal/peers.ts";
import { indexOf } from "./simulation-options.ts";
import type { World, WorldProcess } from "./world.ts";

const LIST_AGE_MS = 2_000;

/** The other replicas, as one of them has listed them in the record, over the simulated network. */
export class SimulatedPeers implements PeerList {
  replicas: readonly LiveReplica[] = [];
  readonly #world: World;
  readonly #self: WorldProcess;
  readonly #remembered = new Map<string, AskedPeer>();
  #listedAtMs = Number.NEGATIVE_INFINITY;

  constructor(world: World, self: WorldProcess) {
    this.#world = world;
    this.#self = self;
  }

  get otherEndpoints(): readonly string[] {
    return this.#others().map(({ agentEndpoint }) => agentEndpoint);
  }

  known(): readonly AskedPeer[] {
    return this.#others().flatMap(({ instance }) => this.remembered(instance) ?? []);
  }

  remembered(instance: string): AskedPeer | null {
    return this.#remembered.get(instance) ?? null;
  }

  async refresh(olderThanMs = LIST_AGE_MS): Promise<void> {
    const { schedule, record } = this.#world;
    if (schedule.nowMs - this.#listedAtMs < olderThanMs) return;
    try {
      this.replicas = await this.#world.callRecord(this.#self, () =>
        [...record.leases].flatMap(([instance, { sessions }]) => {
          const process = this.#world.processNamed(instance);
          if (process === null || process.isHidden) return [];
          const internalAddress = `${process.slot}`;
          return [{ instance, agentEndpoint: `slot-${process.slot}`, internalAddress, queryEndpoint: "", sessions }];
        }),
      );
      this.#listedAtMs = schedule.nowMs;
      for (const { instance } of this.#others()) this.#remembered.set(instance, this.#peer(instance));
    } catch {
      // The last list counts.
    }
  }

  #others(): readonly LiveReplica[] {
    return this.replicas.filter(({ instance }) => instance !== this.#self.instance);
  }

  #peer(instance: string): AskedPeer {
    return {
      instance,
      client: {
        probeNodes: async ({ nodeIds = [] }) => {
          const contacts = await this.#call(instance, ({ core }) =>
            contactsOf(core.replica, nodeIds, this.#world.schedule.nowMs),
          );
          for (const { nodeId, silentMs } of contacts) this.#heard(nodeId, silentMs);
          return create(ProbeNodesResponseSchema, {
            contacts: contacts.map(({ nodeId, silentMs }) => ({ nodeId, silentFor: durationFromMs(silentMs) })),
          });
        },
        getReplicaState: async () => {
          const { mayOpen: holdsLease, nodes } = await this.#call(instance, ({ core }) => core.replica);
          return create(GetReplicaStateResponseSchema, { holdsLease, sessions: nodes.sessions });
        },
      },
    };
  }

  /** An adopted node still beats at its previous owner: the contact is as old as that says. */
  #heard(nodeId: string, silentMs: number): void {
    const { core, observer } = this.#self;
    const node = core.replica.nodes.find(nodeId);
    if (node?.publicKey !== null || node.stream !== null || node.watch.health !== "HEALTHY") return;
    observer.heard(indexOf(nodeId), this.#world.schedule.nowMs, silentMs);
  }

  #call<T>(instance: string, ask: (peer: WorldProcess) => T): Promise<T> {
    const { network, schedule } = this.#world;
    return new Promise((resolve, reject) => {
      const answer = (settle: () => void) => {
        schedule.after(network.callDelayMs(), () => this.#world.deliver(this.#self, settle));
      };
      const peer = this.#world.processNamed(instance);
      if (peer === null || !network.reachesReplica(this.#self.slot, peer.slot)) {
        answer(() => reject(new Error(`${instance} does not answer`)));
        return;
      }
      schedule.after(network.callDelayMs(), () => {
        this.#world.deliver(peer, () => {
          const asked = ask(peer);
          answer(() => resolve(asked));
        });
      });
      // A peer that is stopped or dies answers too late.
      schedule.after(PEER_TIMEOUT_MS, () => {
        this.#world.deliver(this.#self, () => reject(new Error(`${instance} did not answer in time`)));
      });
    });
  }
}

const PEER_TIMEOUT_MS = 1_500;
