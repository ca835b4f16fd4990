import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/**
 * Whether the answer to a call is sure to be binary, so that items may be given as bytes: JSON would leave them out.
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
 * The items of a list in a response, as messages, or as bytes where the answer is binary: those take a fraction of the
 * memory, can be encoded one by one, and may be shared by several answers.
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

  /** Add an item that is encoded. Only for a binary call, and for all items of it. */
  addBytes(bytes: Uint8Array): void {
    this.#encoded.push(bytes);
  }

  /** The same items, the last one first. */
  reversed(): EncodedItems<Item> {
    const turned = new EncodedItems(this.#item);
    turned.#messages.push(...this.#messages.toReversed());
    turned.#encoded.push(...this.#encoded.toReversed());
    return turned;
  }

  /** The response that carries them in this field. */
  answer<Response extends DescMessage>(
    desc: Response,
    field: string & keyof MessageShape<Response>,
    rest: MessageInitShape<Response>,
  ): MessageShape<Response> {
    const response = create(desc, rest);
    const list = desc.field[field];
    if (list?.fieldKind !== "list" || list.message !== this.#item) {
      throw new Error(`${desc.typeName}.${field} is no list of ${this.#item.typeName}`);
    }
    Object.assign(response, { [field]: this.#messages });
    // The encoder copies unknown fields as they are.
    response.$unknown = this.#encoded.map((bytes) => ({
      no: list.number,
      wireType: WireType.LengthDelimited,
      data: new BinaryWriter().bytes(bytes).finish(),
    }));
    return response;
  }
}
