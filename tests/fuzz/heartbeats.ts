import { type ClientHttp2Session, connect } from "node:http2";
import { create, type DescMethod, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  HeartbeatRequestSchema,
  HeartbeatResponseSchema,
} from "../../libs/api/src/gen/rollcall/health/v1/health_pb.ts";
import { binaryMessage } from "./binary-message.ts";
import { damage } from "./damage.ts";
import type { Fleet } from "./fleet.ts";
import { type Answer, endOf } from "./send.ts";
import type { Taste } from "./taste.ts";
import { envelope } from "./wire-request.ts";

const PATIENCE_MS = 90_000;

/** The parts of an agent's stream. They are chosen before the server's nonce is known. */
export interface HeartbeatPlan {
  readonly path: string;
  /** The node that sends a valid Hello; null for a stream with a random start. */
  readonly node: Parameters<Fleet["sign"]>[0] | null;
  /** The frames after the Hello, in gRPC's framing. */
  readonly frames: readonly Uint8Array[];
  /** Whether the agent half-closes its side; otherwise it disconnects. */
  readonly endsInOrder: boolean;
}

export function planHeartbeats(method: DescMethod, taste: Taste, fleet: Fleet): HeartbeatPlan {
  const { dice } = taste;
  const frames = Array.from({ length: dice.int(0, 6) }, () => {
    const made = binaryMessage(method.input, taste);
    const bytes = taste.isNasty(0.4) ? damage(made, dice) : made;
    const framed = Buffer.from(envelope(bytes, taste.isNasty(0.05) ? 1 : 0));
    return taste.isNasty(0.05) ? damage(framed, dice) : framed;
  });
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    node: dice.chance(0.7) ? dice.pick(fleet.nodes) : null,
    frames,
    endsInOrder: dice.chance(0.8),
  };
}

/** Open one agent's stream according to the plan, on a new connection. */
export function sendHeartbeats(origin: string, plan: HeartbeatPlan, fleet: Fleet): Promise<Answer> {
  return new Promise((resolve) => {
    const session: ClientHttp2Session = connect(origin);
    const headers: Record<string, string> = {};
    const chunks: Buffer[] = [];
    let status = 0;
    let hasGreeted = false;
    const finish = (end: string) => {
      clearTimeout(late);
      session.destroy();
      resolve({ status, headers, body: Buffer.concat(chunks), end });
    };
    const sentBytes = plan.frames.reduce((total, frame) => total + frame.length, 0);
    const fail = (error: Error) => finish(endOf(error, sentBytes));
    const late = setTimeout(() => finish(`no end in ${PATIENCE_MS} ms`), PATIENCE_MS);
    session.on("error", fail);
    const stream = session.request({
      ":method": "POST",
      ":path": plan.path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const keep = (more: object) => {
      for (const [name, value] of Object.entries(more)) headers[name] = String(value);
    };
    stream.on("response", (head) => {
      status = Number(head[":status"]);
      keep(head);
    });
    stream.on("trailers", keep);
    stream.on("error", fail);
    stream.on("close", () => finish(status === 0 ? `no answer: ${stream.rstCode}` : "whole"));
    stream.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      if (hasGreeted) return;
      hasGreeted = true;
      const hello = helloTo(chunk, plan, fleet);
      for (const frame of hello === null ? plan.frames : [hello, ...plan.frames]) {
        stream.write(frame);
      }
      if (plan.endsInOrder) stream.end();
      else finish("open");
    });
  });
}

/** Respond to the Challenge, which is small and arrives in one piece. */
function helloTo(chunk: Buffer, { path, node }: HeartbeatPlan, fleet: Fleet): Uint8Array | null {
  if (node === null) return null;
  const { frame } = fromBinary(HeartbeatResponseSchema, chunk.subarray(5));
  if (frame.case !== "challenge") return null;
  const signature = fleet.sign(node, path, frame.value.nonce);
  const value = { nodeId: node.id, signature, bootId: "fuzz", machineFingerprint: "fuzz" };
  const hello = create(HeartbeatRequestSchema, { frame: { case: "hello", value } });
  return envelope(toBinary(HeartbeatRequestSchema, hello));
}
