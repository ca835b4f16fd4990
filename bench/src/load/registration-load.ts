import { setTimeout as pause } from "node:timers/promises";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  CreateChallengeResponseSchema,
  RegisterNodeRequestSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { proofText } from "@rollcall/domain";
import { type NodeKeyPair, signProof } from "@rollcall/identity";
import { benchNodeId, benchNodeInfo, benchNodeKey } from "../seeds/bench-nodes.ts";
import { answerOrders } from "./orders.ts";
import { UnaryClient } from "./unary-client.ts";

/** An order to this process: register this many new nodes over this many concurrent connections. */
export interface RegistrationOrder {
  /** Ports of the registries, which share the nodes evenly. */
  readonly ports: readonly number[];
  /** The index of the first node. Each index can be used only once. */
  readonly from: number;
  readonly count: number;
  /** The PEM of the authority that signed the registries' certificates. Absent: plain text. */
  readonly authority?: string;
  readonly connections: number;
  /** The join token that every node presents; empty for none. */
  readonly joinToken: string;
  /** Registrations started per second. Absent: unlimited. */
  readonly perSecond?: number;
}

/** The result of an order. */
export interface RegistrationOutcome {
  readonly registered: number;
  readonly failed: number;
  readonly lastFailure: string;
  /** The time from the first request for a challenge to the last response. Keys were created before. */
  readonly elapsedMs: number;
  /**
   * The duration of each RegisterNode. At a given rate, it is measured from the scheduled time and includes the
   * challenge.
   */
  readonly latenciesMs: readonly number[];
}

const SERVICE = "/rollcall.registry.v1.RegistryService";
const REGISTER_PATH = `${SERVICE}/RegisterNode`;

/**
 * A node that is ready to register. Its request is already encoded except for the proof, so that little work
 * remains during the measurement.
 */
interface Candidate {
  readonly nodeId: string;
  readonly key: NodeKeyPair;
  readonly request: Uint8Array;
}

function candidate(index: number, joinToken: string): Candidate {
  const nodeId = benchNodeId(index);
  const key = benchNodeKey(index);
  const { publicKey } = key;
  const info = benchNodeInfo(index);
  const request = create(RegisterNodeRequestSchema, { nodeId, publicKey, info, joinToken });
  return { nodeId, key, request: toBinary(RegisterNodeRequestSchema, request) };
}

async function register(
  client: UnaryClient,
  { nodeId, key, request }: Candidate,
): Promise<{ readonly sentAtMs: number }> {
  const { nonce, clusterId } = fromBinary(
    CreateChallengeResponseSchema,
    await client.call(`${SERVICE}/CreateChallenge`, new Uint8Array()),
  );
  const text = proofText({ method: REGISTER_PATH, clusterId, nodeId, nonce });
  const proof = { nonce, signature: signProof(key.privateKey, text) };
  // Complete the encoded request by appending the proof. This works because fields can come in any order.
  const rest = toBinary(RegisterNodeRequestSchema, create(RegisterNodeRequestSchema, { proof }));
  const sentAtMs = performance.now();
  await client.call(REGISTER_PATH, Buffer.concat([request, rest]));
  return { sentAtMs };
}

answerOrders<RegistrationOrder, RegistrationOutcome>(async (order) => {
  const { ports, from, count, connections, joinToken, perSecond, authority } = order;
  const candidates = Array.from({ length: count }, (_, offset) => candidate(from + offset, joinToken));
  const clients = Array.from({ length: connections }, (_, index) => {
    const port = ports[index % ports.length] ?? 0;
    const secured = authority === undefined ? {} : { authority };
    return new UnaryClient({ port, ...secured, localAddress: `127.0.0.${2 + (index % 8)}` });
  });
  await Promise.all(clients.map((client) => client.ready));

  const latenciesMs: number[] = [];
  let failed = 0;
  let lastFailure = "";
  const start = performance.now();
  const queue = candidates.entries();
  await Promise.all(
    clients.map(async (client) => {
      for (const [turn, one] of queue) {
        const dueMs = perSecond === undefined ? null : start + (turn * 1_000) / perSecond;
        if (dueMs !== null) await pause(Math.max(0, dueMs - performance.now()));
        await register(client, one).then(
          ({ sentAtMs }) => latenciesMs.push(performance.now() - (dueMs ?? sentAtMs)),
          (error: unknown) => {
            failed += 1;
            lastFailure = String(error);
          },
        );
      }
    }),
  );
  const elapsedMs = performance.now() - start;
  for (const client of clients) client.close();
  return { registered: latenciesMs.length, failed, lastFailure, elapsedMs, latenciesMs };
});
