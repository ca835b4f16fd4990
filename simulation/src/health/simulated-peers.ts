import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  ForwardHeartbeatRequestSchema,
  ForwardHeartbeatResponseSchema,
  GetReplicaStateResponseSchema,
  ProbeNodesResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { contactsOf, type PeerClient, Peers, responseOf } from "@rollcall/health/parts";
import type { Clock } from "@rollcall/process";
import type { LiveReplica } from "@rollcall/store";
import { indexOf } from "./simulation-options.ts";
import type { World, WorldProcess } from "./world.ts";

/** The calls between replicas in the simulation. */
export type SimulatedClient = Pick<PeerClient, "probeNodes" | "getReplicaState" | "forwardHeartbeat">;

const PEER_TIMEOUT_MS = 1_500;

/**
 * Create the other replicas, as one replica lists them in the store and calls them over the simulated
 * network.
 */
export function createSimulatedPeers(world: World, self: WorldProcess, clock: Clock): Peers<SimulatedClient> {
  return new Peers({
    ...{ instance: self.instance, clock },
    list: () => world.callRecord(self, () => listReplicas(world)),
    connect: ({ instance }) => ({ client: new PeerCalls(world, self, instance), close: () => {} }),
  });
}

/** List replicas with a lease. If two share a slot, only the later one has the address. */
function listReplicas(world: World): readonly LiveReplica[] {
  const { record } = world;
  const latest = new Map<string, string>();
  for (const instance of record.leases.keys()) latest.set(placeOf(instance), instance);
  return [...record.leases].flatMap(([instance, { sessions }]) => {
    if (world.processNamed(instance)?.isHidden === true) return [];
    const place = placeOf(instance);
    const internalAddress = latest.get(place) === instance ? place : "";
    return [{ instance, agentEndpoint: place, internalAddress, queryEndpoint: "", sessions }];
  });
}

/** The slot name of a process, which is its instance without the number at the end. */
function placeOf(instance: string): string {
  return instance.slice(0, instance.indexOf("-"));
}

/** The calls from one replica to another. */
class PeerCalls implements SimulatedClient {
  readonly #world: World;
  readonly #self: WorldProcess;
  readonly #instance: string;

  constructor(world: World, self: WorldProcess, instance: string) {
    this.#world = world;
    this.#self = self;
    this.#instance = instance;
  }

  probeNodes: SimulatedClient["probeNodes"] = async ({ nodeIds = [] }) => {
    const { schedule } = this.#world;
    const contacts = await this.#call(({ core }) => contactsOf(core.replica, nodeIds, schedule.nowMs));
    for (const { nodeId, silentMs } of contacts) this.#heard(nodeId, silentMs);
    return create(ProbeNodesResponseSchema, {
      contacts: contacts.map(({ nodeId, silentMs }) => ({ nodeId, silentFor: durationFromMs(silentMs) })),
    });
  };

  getReplicaState: SimulatedClient["getReplicaState"] = async () => {
    const { mayOpen: holdsLease, nodes } = await this.#call(({ core }) => core.replica);
    return create(GetReplicaStateResponseSchema, { holdsLease, sessions: nodes.sessions });
  };

  forwardHeartbeat: SimulatedClient["forwardHeartbeat"] = async (request) => {
    const { heartbeat } = create(ForwardHeartbeatRequestSchema, request);
    if (heartbeat === undefined) throw new Error("the contract requires a heartbeat");
    const answer = await this.#call(({ unary }) => responseOf(unary.take(heartbeat)));
    return create(ForwardHeartbeatResponseSchema, { answer });
  };

  /** Report to the observer that the previous owner of an adopted node still receives its heartbeats. */
  #heard(nodeId: string, silentMs: number): void {
    const { core, observer } = this.#self;
    const node = core.replica.nodes.find(nodeId);
    if (node?.publicKey !== null || node.stream !== null || node.timing.health !== "HEALTHY") return;
    observer.heard(indexOf(nodeId), this.#world.schedule.nowMs, silentMs);
  }

  #call<T>(ask: (peer: WorldProcess) => T): Promise<T> {
    const { network, schedule } = this.#world;
    return new Promise((resolve, reject) => {
      const answer = (settle: () => void) => {
        schedule.after(network.callDelayMs(), () => this.#world.deliver(this.#self, settle));
      };
      const peer = this.#world.processNamed(this.#instance);
      if (peer === null || !network.reachesReplica(this.#self.slot, peer.slot)) {
        answer(() => reject(new Error(`${this.#instance} does not answer`)));
        return;
      }
      schedule.after(network.callDelayMs(), () => {
        this.#world.deliver(peer, () => {
          try {
            const asked = ask(peer);
            answer(() => resolve(asked));
          } catch (error) {
            answer(() => reject(error));
          }
        });
      });
      // The call times out if the peer is stopped or has died.
      schedule.after(PEER_TIMEOUT_MS, () => {
        this.#world.deliver(this.#self, () => reject(new Error(`${this.#instance} did not answer in time`)));
      });
    });
  }
}
