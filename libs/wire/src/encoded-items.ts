import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/**
 * Whether the response to a call is certain to be binary. Only in that case can items be given as bytes, because JSON
 * would omit them.
 */
export function isBinaryCall(header: Headers): boolean {
  return BINARY_TYPES.has(header.get("content-type") ?? "");
}

const BINARY_TYPES: ReadonlySet<string> = new Set([
  "application/grpc",
  "application/grpc+proto",
  "application/grpc-web",
  "application/grpc-web+proto",
  "application/proto",
  "application/connect+proto",
]);

/**
 * The items of a list in a response: as bytes if the response is binary, otherwise as messages. Bytes take a fraction
 * of the memory, can be encoded one item at a time, and can be shared by several responses.
 */
export class EncodedItems<Item extends DescMessage> {
  readonly #item: Item;
  readonly #messages: MessageShape<Item>[] = [];
  readonly #encoded: Uint8Array[] = [];

  constructor(item: Item) {
    this.#item = item;
  }

  add(message: MessageShape<Item>): void {
    this.#messages.push(message);
  }

  /** Add an encoded item. Allowed only for a binary call. All items must then be added as bytes. */
  addBytes(bytes: Uint8Array): void {
    this.#encoded.push(bytes);
  }

  /** The same items in reverse order. */
  reversed(): EncodedItems<Item> {
    const turned = new EncodedItems(this.#item);
    turned.#messages.push(...this.#messages.toReversed());
    turned.#encoded.push(...this.#encoded.toReversed());
    return turned;
  }

  /** Create the response, with the items in this field. */
  answer<Response extends DescMessage>(
    desc: Response,
    field: string & keyof MessageShape<Response>,
    rest: MessageInitShape<Response>,
  ): MessageShape<Response> {
    const response = create(desc, rest);
    const list = desc.field[field];
    if (list?.fieldKind !== "list" || list.message !== this.#item) {
      throw new Error(`${desc.typeName}.${field} is not a list of ${this.#item.typeName}`);
    }
    Object.assign(response, { [field]: this.#messages });
    // Add the items as unknown fields, which the encoder copies unchanged.
    response.$unknown = this.#encoded.map((bytes) => ({
      no: list.number,
      wireType: WireType.LengthDelimited,
      data: new BinaryWriter().bytes(bytes).finish(),
    }));
    return response;
  }
}
