import { randomBytes } from "node:crypto";
import {
  create,
  createRegistry,
  type DescMessage,
  type DescMethod,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { proofText } from "../../libs/domain/src/index.ts";
import {
  createChallenge,
  generateKeyPair,
  keyFingerprint,
  type NodeKeyPair,
  signProof,
  signReplicaCall,
} from "../../libs/identity/src/index.ts";
import {
  accessTokenHash,
  ensureAccessToken,
  insertNode,
  listHealthReplicas,
  type Store,
  saveInfo,
} from "../../libs/store/src/index.ts";
import { saveKey } from "../../libs/testkit/src/index.ts";
import type { JsonInput } from "./json-message.ts";
import type { Live } from "./taste.ts";
import type { Overlay } from "./wire-request.ts";

/** A node whose key the fuzzer has. */
export interface FuzzNode {
  readonly id: string;
  readonly keyPair: NodeKeyPair;
}

const ROLES = ["viewer", "operator", "admin"] as const;
const NODES = ["fuzz-0", "fuzz-1", "fuzz-2", "fuzz-10", "Fuzz_X.y", "lonely"];

/**
 * The fleet that the fuzzer's calls are about. The fuzzer also acts as its nodes and users. Successful calls delete
 * nodes, ban keys and revoke tokens, so each round restores everything first. Otherwise most calls would soon return
 * "not found".
 */
export class Fleet {
  readonly nodes: readonly FuzzNode[] = NODES.map((id) => ({ id, keyPair: generateKeyPair() }));
  readonly #store: Store;
  #tokens = new Map<string, string>();
  #replica = "";

  constructor(store: Store) {
    this.#store = store;
  }

  /** Return the access token of a role, created for this round. */
  token(role: (typeof ROLES)[number]): string {
    return this.#tokens.get(role) ?? "";
  }

  async restore(round: number): Promise<void> {
    const { db } = this.#store;
    await db.deleteFrom("bans").execute();
    await db.deleteFrom("health_policies").execute();
    await db.deleteFrom("nodes").where("id", "in", NODES).execute();
    for (const node of this.nodes) await this.#add(node);
    this.#tokens = new Map();
    for (const role of ROLES) {
      const token = `fuzz-${role}-${randomBytes(16).toString("base64url")}`;
      const id = `fuzz-${role}-${round}-${randomBytes(3).toString("hex")}`;
      await ensureAccessToken(db, { id, name: id, role, hash: accessTokenHash(token) });
      this.#tokens.set(role, token);
    }
    this.#replica = (await listHealthReplicas(db))[0]?.instance ?? "";
  }

  /** Return the credentials of another replica for a call of a method. */
  replicaCredentials(method: DescMethod): string {
    const call = { from: "fuzz", to: this.#replica, method: pathOf(method) };
    return signReplicaCall(this.#store.clusterSecret(), call, Date.now());
  }

  /** Sign as a node. */
  sign(node: FuzzNode, method: string, nonce: Uint8Array): Uint8Array {
    const clusterId = this.#store.clusterId();
    return signProof(node.keyPair.privateKey, proofText({ method, clusterId, nodeId: node.id, nonce }));
  }

  /**
   * Return the fields that make a node's call valid: its id, its key and its proof. Returns null if the method has
   * no such fields.
   */
  proofOf(method: DescMethod, node: FuzzNode): Overlay | null {
    const fields = new Set(method.input.fields.map(({ name }) => name));
    const nonce = new Uint8Array(createChallenge(this.#store.clusterSecret(), Date.now()));
    const path = pathOf(method);
    const signature = this.sign(node, path, nonce);
    if (fields.has("proof")) {
      const next = generateKeyPair();
      const successor = { id: node.id, keyPair: next };
      return overlay(method.input, {
        nodeId: node.id,
        proof: { nonce, signature },
        ...(fields.has("public_key") ? { publicKey: node.keyPair.publicKey } : {}),
        ...(fields.has("next_public_key")
          ? { nextPublicKey: next.publicKey, nextSignature: this.sign(successor, path, nonce) }
          : {}),
      });
    }
    if (!fields.has("open")) return null;
    const open = { nonce, hello: { nodeId: node.id, signature } };
    return overlay(method.input, { nodeId: node.id, step: { case: "open", value: open } });
  }

  async #add({ id, keyPair: { publicKey } }: FuzzNode): Promise<void> {
    await this.#store.transaction(async (tx) => {
      const membership = {
        state: id === "lonely" ? "PENDING" : "APPROVED",
        sinceMs: 0,
        reason: "TESTED",
        message: "",
        actor: "system",
      } as const;
      await insertNode(tx, { id, type: "COMPUTE", membership });
      await saveKey(tx, { nodeId: id, publicKey, fingerprint: keyFingerprint(publicKey) });
      await saveInfo(tx, id, {
        info: { hostname: id },
        digest: `digest of ${id}`,
        summary: { cores: 4, memoryBytes: 8e9, diskBytes: 1e11, gpus: 0 },
        agentLabels: { zone: "a" },
      });
    });
  }
}

function overlay(desc: DescMessage, init: Record<string, unknown>): Overlay {
  const message: Message = create(desc, init);
  const json = toJson(desc, message, { registry: createRegistry() }) as Record<string, JsonInput>;
  return { json, binary: toBinary(desc, message) };
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** The request fields that take a value, keyed by the name under which responses return it. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  node_id: ["node", "node_ids", "subject", "target", "after_id", "id"],
  next_page_token: ["page_token"],
  group: ["name"],
  key_fingerprint: ["fingerprint"],
};
const MOST_KNOWN = 12;

/** Collect the strings in responses, keyed by field name. */
export function gather(answers: readonly unknown[]): Live {
  const found = new Map<string, string[]>();
  const add = (name: string, text: string) => {
    const known = found.get(name) ?? [];
    if (text === "" || known.length >= MOST_KNOWN || known.includes(text)) return;
    found.set(name, [...known, text]);
  };
  const visit = (value: unknown, key: string): void => {
    if (typeof value === "string") {
      const name = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      for (const each of [name, ...(ALSO[name] ?? [])]) add(each, value);
    } else if (Array.isArray(value)) {
      for (const item of value) visit(item, key);
    } else if (typeof value === "object" && value !== null) {
      for (const [name, item] of Object.entries(value)) visit(item, name);
    }
  };
  for (const answer of answers) visit(answer, "");
  for (const id of NODES) visit(id, "nodeId");
  return found;
}
