import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { HoldKind, MembershipState, type Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { proofText } from "@rollcall/domain";
import { signProof } from "@rollcall/identity";
import { membershipStateFromProto } from "@rollcall/wire";
import { benchNodeId, benchNodeInfo, benchNodeKey } from "../../seeds/bench-nodes.ts";
import { DRILL_LABEL, type NodeView, type OperationName } from "./history.ts";

const CALL_TIMEOUT_MS = 10_000;
const REGISTER = RegistryService.method.registerNode;
/** Codes after which the caller does not know whether the call took effect. */
const UNKNOWN_CODES = new Set(["unavailable", "deadline_exceeded", "resource_exhausted", "aborted", "canceled"]);
/** Codes that no call may return. They also leave the outcome unknown. */
const FAULTY_CODES = new Set(["internal", "unknown", "data_loss", "unimplemented", "unauthenticated"]);

/** The result of one attempt of an operation. */
export type Attempt =
  | { readonly kind: "done"; readonly seen: NodeView | null }
  | { readonly kind: "refused"; readonly reason: string }
  /** The call may have taken effect. `fault` describes a response that no server should send; otherwise null. */
  | { readonly kind: "unknown"; readonly fault: string | null }
  /** The call did not reach a server, or the server did not decide it. It certainly had no effect. */
  | { readonly kind: "unsent" };

/** An operation on one node, before it is sent. */
export interface NodeCall {
  readonly operation: OperationName;
  readonly nodeIndex: number;
  /** The label's value to set. */
  readonly value: string;
  readonly requestId: string;
}

/** Where to send a call. */
export interface CallTarget {
  readonly adminPort: number;
  readonly registryPort: number;
  readonly token: string;
}

/** The operations that take a request id. The others are not repeated after an unknown outcome. */
export function takesRequestId(operation: OperationName): boolean {
  return operation !== "read" && operation !== "register";
}

/**
 * Send an operation once, as the Connect protocol over HTTP.
 *
 * @param sending is called immediately before the request that counts, because registrations first fetch a challenge.
 */
export async function callNode(target: CallTarget, call: NodeCall, sending: () => void): Promise<Attempt> {
  const admin = { port: target.adminPort, token: target.token };
  const registry = { ...admin, port: target.registryPort };
  const { operation, nodeIndex, requestId, value } = call;
  const node = benchNodeId(nodeIndex);
  const named = { node, requestId, reason: operation };
  const { method } = AdminService;
  if (operation === "register") return register(registry, nodeIndex, sending);
  sending();
  switch (operation) {
    case "read":
      return unary(registry, RegistryService.method.getNode, { node });
    case "approve":
      return unary(admin, method.approveNode, named);
    case "reject":
      return unary(admin, method.rejectNode, named);
    case "cordon":
      return unary(admin, method.cordonNode, named);
    case "uncordon":
      return unary(admin, method.uncordonNode, named);
    case "label":
      return unary(admin, method.setNodeLabels, { ...named, set: { [DRILL_LABEL]: value } });
    case "ban":
      return unary(admin, method.banNode, named);
    case "unban":
      return unary(admin, method.unbanNode, named);
    case "delete":
      return unary(admin, method.deleteNode, named);
  }
}

interface Server {
  readonly port: number;
  readonly token: string;
}

async function register(server: Server, nodeIndex: number, sending: () => void): Promise<Attempt> {
  const challenge = await send(server, RegistryService.method.createChallenge, {});
  if (challenge.kind !== "message") return { kind: "unsent" };
  const { nonce, clusterId } = challenge.message;
  const nodeId = benchNodeId(nodeIndex);
  const { publicKey, privateKey } = benchNodeKey(nodeIndex);
  const method = `/${REGISTER.parent.typeName}/${REGISTER.name}`;
  const signature = signProof(privateKey, proofText({ method, clusterId, nodeId, nonce }));
  sending();
  const proof = { nonce, signature };
  const attempt = await unary(server, REGISTER, { nodeId, publicKey, info: benchNodeInfo(nodeIndex), proof });
  // The nonce was used or has expired, so the registry did not look at the node.
  return attempt.kind === "refused" && attempt.reason === "CHALLENGE_INVALID" ? { kind: "unsent" } : attempt;
}

async function unary<I extends DescMessage, O extends DescMessage>(
  server: Server,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
): Promise<Attempt> {
  const sent = await send(server, method, request);
  if (sent.kind !== "message") return sent;
  const { node } = sent.message as { readonly node?: Node };
  return { kind: "done", seen: node === undefined ? null : viewOf(node) };
}

type Sent<O extends DescMessage> =
  | Exclude<Attempt, { kind: "done" }>
  | { readonly kind: "message"; readonly message: MessageShape<O> };

async function send<I extends DescMessage, O extends DescMessage>(
  { port, token }: Server,
  { parent, name, input, output }: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
): Promise<Sent<O>> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/${parent.typeName}/${name}`, {
      method: "POST",
      headers: { "content-type": "application/proto", authorization: `Bearer ${token}` },
      body: toBinary(input, create(input, request)),
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    });
    const body = new Uint8Array(await answer.arrayBuffer());
    if (answer.ok) return { kind: "message", message: fromBinary(output, body) };
    return failureOf(name, Buffer.from(body).toString());
  } catch (error) {
    return isRefusedConnection(error) ? { kind: "unsent" } : { kind: "unknown", fault: null };
  }
}

/** Evaluate the body of an error in the Connect protocol. */
export function failureOf(method: string, body: string): Exclude<Attempt, { kind: "done" }> {
  const { code, details = [] } = parseError(body);
  if (UNKNOWN_CODES.has(code)) return { kind: "unknown", fault: null };
  const info = details.find(({ type }) => type === ErrorInfoSchema.typeName);
  if (FAULTY_CODES.has(code) || info === undefined) return { kind: "unknown", fault: `${method} returned ${body}` };
  return { kind: "refused", reason: fromBinary(ErrorInfoSchema, Buffer.from(info.value, "base64")).reason };
}

interface WireError {
  readonly code: string;
  readonly details?: readonly { readonly type: string; readonly value: string }[];
}

/** Parse the body of an error. Anything else than an error of the protocol gets the code "unknown". */
function parseError(body: string): WireError {
  try {
    const parsed: WireError = JSON.parse(body);
    return typeof parsed.code === "string" ? parsed : { code: "unknown" };
  } catch {
    // The caller reports the body.
    return { code: "unknown" };
  }
}

function isRefusedConnection(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: string } };
  return cause?.code === "ECONNREFUSED";
}

/** The part of a node that the model knows. */
function viewOf({ membership, scheduling, labels }: Node): NodeView {
  return {
    membership: membershipStateFromProto(membership?.state ?? MembershipState.UNSPECIFIED) ?? "UNSPECIFIED",
    banned: membership?.reason === "OPERATOR_BANNED",
    cordoned: scheduling?.holds.some(({ kind }) => kind === HoldKind.OPERATOR) ?? false,
    label: labels.find(({ key }) => key === DRILL_LABEL)?.value ?? "",
  };
}
