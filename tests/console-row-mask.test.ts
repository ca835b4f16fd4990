import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { describe, expect, it } from "@jest/globals";
import { type Node, NodeSchema } from "../libs/api/src/gen/rollcall/node/v1/node_pb.ts";
import { parseReadMask } from "../libs/wire/src/index.ts";
import { applyReadMask } from "../libs/wire/src/read-mask.ts";
import { ROW_PATHS, toRow } from "../services/console/web/src/state/nodes/node-row.ts";

const DEEPEST = 6;

function scalarOf(type: ScalarType): unknown {
  if (type === ScalarType.STRING) return "x";
  if (type === ScalarType.BOOL) return true;
  if (type === ScalarType.BYTES) return new Uint8Array([1]);
  const isLong = [ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64, ScalarType.FIXED64, ScalarType.SFIXED64];
  return isLong.includes(type) ? 7n : 7;
}

/** Create a value for a field, or for an item of a list. */
function sampleOf(field: DescField, depth: number): unknown {
  if (field.message !== undefined) return filled(field.message, depth + 1);
  if (field.enum !== undefined) return field.enum.values.at(-1)?.number;
  return scalarOf(field.scalar ?? ScalarType.STRING);
}

/** Create a message with a value in each field. */
function filled(desc: DescMessage, depth = 0): ReflectMessage {
  const message = reflect(desc);
  if (depth > DEEPEST) return message;
  for (const field of desc.fields) {
    if (field.fieldKind === "map") continue;
    if (field.fieldKind === "list") message.get(field).add(sampleOf(field, depth) as never);
    else message.set(field, sampleOf(field, depth) as never);
  }
  return message;
}

const fullNode = () => filled(NodeSchema).message as Node;

function masked(paths: readonly string[]): Node {
  const parsed = parseReadMask(NodeSchema, paths);
  if (!parsed.ok) throw new Error(parsed.description);
  const node = fullNode();
  applyReadMask(node as Message, parsed.mask);
  return node;
}

describe("ROW_PATHS", () => {
  it("should name all fields that the row of a node shows", () => {
    expect(toRow(masked(ROW_PATHS))).toEqual(toRow(fullNode()));
  });

  it.each(ROW_PATHS.filter((path) => path !== "id"))("should not name %s in vain", (path) => {
    const others = ROW_PATHS.filter((one) => one !== path);
    expect(toRow(masked(others))).not.toEqual(toRow(fullNode()));
  });
});
