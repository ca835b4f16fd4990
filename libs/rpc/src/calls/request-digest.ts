import { createHash } from "node:crypto";
import { clone, type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/**
 * Fields that are not part of a digest. The request id is the key under which the digest is stored. All pages of a
 * selection belong to the same request, whatever their page tokens. A call that only validates stores no response.
 */
export const NOT_DIGESTED: ReadonlySet<string> = new Set(["request_id", "page_token", "validate_only"]);

/**
 * The SHA-256 digest of a request's content. Unknown fields do not change the digest. The order of map entries does not
 * change it either, because clients can send a map in any order.
 */
export function requestDigest(schema: DescMessage, request: Message): Uint8Array {
  const copy = reflect(schema, clone(schema, request));
  for (const field of copy.fields) if (NOT_DIGESTED.has(field.name)) copy.clear(field);
  sortMaps(copy);
  return createHash("sha256")
    .update(toBinary(schema, copy.message, { writeUnknownFields: false }))
    .digest();
}

function sortMaps(message: ReflectMessage): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    if (field.fieldKind === "message") sortMaps(message.get(field));
    if (field.fieldKind === "list" && field.listKind === "message") {
      for (const item of message.get(field)) sortMaps(item as ReflectMessage);
    }
    if (field.fieldKind !== "map") continue;
    const map = message.get(field);
    const entries = [...map].sort(([left], [right]) => (String(left) < String(right) ? -1 : 1));
    map.clear();
    for (const [key, value] of entries) {
      if (field.mapKind === "message") sortMaps(value as ReflectMessage);
      map.set(key, value);
    }
  }
}
