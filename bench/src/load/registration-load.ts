import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  CreateChallengeResponseSchema,
  RegisterNodeRequestSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { proofText } from "@rollcall/domain";
import { type NodeKeyPair, signProof } from "@rollcall/runtime/client";
import { benchNodeId, benchNodeInfo, benchNodeKey } from "../seeds/bench-nodes.ts";
import { answerOrders } from "./orders.ts";
import { UnaryClient } from "./unary-client.ts";

/** What the benchmark orders from this process: register so many new nodes, over so many connections at once. */
export interface RegistrationOrder {
  readonly port: number;
  /** Index of the first node; no index may be used twice. */
  readonly from: number;
  readonly count: number;
  readonly connections: number;
  /** The text of the join token that every node gives; empty for none. */
  readonly joinToken: string;
}

/** What became of an order. */
export interface RegistrationOutcome {
  readonly registered: number;
  readonly failed: number;
  readonly lastFailure: string;
  /** From the first challenge asked for to the last answer. Keys were made before. */
  readonly elapsedMs: number;
  /** How long each RegisterNode took, its challenge not included. */
  readonly latenciesMs: readonly number[];
}

const SERVICE = "/rollcall.registry.v1.RegistryService";
const REGISTER_PATH = `${SERVICE}/RegisterNode`;

/** A node of the load. */
interface NewNode {
  readonly index: number;
  readonly key: NodeKeyPair;
  readonly joinToken: string;
}

async function register(client: UnaryClient, { index, key, joinToken }: NewNode): Promise<number> {
  const challenge = fromBinary(
    CreateChallengeResponseSchema,
    await client.call(`${SERVICE}/CreateChallenge`, new Uint8Array()),
  );
  const nodeId = benchNodeId(index);
  const { nonce, clusterId } = challenge;
  const text = proofText({ method: REGISTER_PATH, clusterId, nodeId, nonce });
  const request = create(RegisterNodeRequestSchema, {
    nodeId,
    publicKey: key.publicKey,
    proof: { nonce, signature: signProof(key.privateKey, text) },
    info: benchNodeInfo(index),
    joinToken,
  });
  const start = performance.now();
  await client.call(REGISTER_PATH, toBinary(RegisterNodeRequestSchema, request));
  return performance.now() - start;
}

answerOrders<RegistrationOrder, RegistrationOutcome>(async (order) => {
  const { port, from, count, connections, joinToken } = order;
  const keys = Array.from({ length: count }, (_, offset) => benchNodeKey(from + offset));
  const clients = Array.from(
    { length: connections },
    (_, index) => new UnaryClient({ port, localAddress: `127.0.0.${2 + (index % 8)}` }),
  );
  await Promise.all(clients.map((client) => client.ready));

  const latenciesMs: number[] = [];
  let failed = 0;
  let lastFailure = "";
  const start = performance.now();
  const queue = keys.entries();
  await Promise.all(
    clients.map(async (client) => {
      for (const [offset, key] of queue) {
        await register(client, { index: from + offset, key, joinToken }).then(
          (latencyMs) => latenciesMs.push(latencyMs),
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
