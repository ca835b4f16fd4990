import type { DescMessage, DescMethod, DescService, Message, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { GenService } from "@bufbuild/protobuf/codegenv2";
import { createClient, type Transport } from "@connectrpc/connect";

/** The settings of one call. */
export interface CallSettings {
  /** Ends the call, including retries. The call fails with the signal's reason, by default an AbortError. */
  readonly signal?: AbortSignal;
  /** Time limit of the call, including retries. Streams have no limit by default. */
  readonly timeoutMs?: number;
}

/** A unary method. Rejects with RollcallError. */
export type UnaryMethod<I extends DescMessage, O extends DescMessage> = ((
  request?: MessageInitShape<I>,
  settings?: CallSettings,
) => Promise<MessageShape<O>>) &
  Paged<I, MessageShape<O>>;

/** A method that returns a stream. Iterating opens the stream, ends it, and throws RollcallError. */
export type StreamMethod<I extends DescMessage, O extends DescMessage> = (
  request?: MessageInitShape<I>,
  settings?: CallSettings,
) => AsyncIterable<MessageShape<O>>;

/** The additional methods of a method that returns pages. */
export type Paged<I extends DescMessage, Page> = Page extends { nextPageToken: string }
  ? {
      /** Iterate over the items of all pages. `timeoutMs` is the limit per page. */
      each(request?: MessageInitShape<I>, settings?: CallSettings): AsyncIterable<ItemOf<Page>>;
    }
  : unknown;

/** The item type of a page's only list. */
export type ItemOf<Page> = {
  [K in keyof Page]-?: Page[K] extends (infer Item)[] ? (Item extends Message ? Item : never) : never;
}[keyof Page];

/** The methods of a service, keyed by their names in camelCase. */
export type MethodsOf<S extends DescService> =
  S extends GenService<infer Shape>
    ? {
        readonly [K in keyof Shape]: Shape[K]["methodKind"] extends "server_streaming"
          ? StreamMethod<Shape[K]["input"], Shape[K]["output"]>
          : UnaryMethod<Shape[K]["input"], Shape[K]["output"]>;
      }
    : never;

/** Create a service's methods over a transport. */
export function methodsOf<S extends DescService>(service: S, transport: Transport): MethodsOf<S> {
  const calls = createClient<DescService>(service, transport) as Readonly<Record<string, Call>>;
  const methods = service.methods.map((method) => {
    const call = calls[method.localName] as Call;
    const items = itemsOf(method);
    const isStream = method.methodKind === "server_streaming";
    const unaryOrStream: Call = (request = {}, settings = {}) =>
      isStream ? streamOf(call, request, settings) : call(request, settings);
    return [
      method.localName,
      items === null ? unaryOrStream : Object.assign(unaryOrStream, { each: eachOf(call, items) }),
    ];
  });
  return Object.fromEntries(methods) as MethodsOf<S>;
}

type Fields = Readonly<Record<string, unknown>>;
type Call = (request?: Fields, settings?: CallSettings) => unknown;

/** The name of the field with a page's items; null for a method without pages. */
function itemsOf({ methodKind, output }: DescMethod): string | null {
  if (methodKind !== "unary" || !output.fields.some(({ localName }) => localName === "nextPageToken")) return null;
  const list = output.fields.find(
    ({ fieldKind, ...field }) => fieldKind === "list" && "listKind" in field && field.listKind === "message",
  );
  return list?.localName ?? null;
}

/** End a stream when its iteration stops, because Connect would leave the stream open. */
async function* streamOf(call: Call, request: Fields, settings: CallSettings): AsyncGenerator<unknown, void> {
  const ending = new AbortController();
  const signal = AbortSignal.any([ending.signal, ...(settings.signal === undefined ? [] : [settings.signal])]);
  try {
    yield* call(request, { ...settings, signal }) as AsyncIterable<unknown>;
  } finally {
    ending.abort();
  }
}

function eachOf(call: Call, items: string) {
  return async function* (request: Fields = {}, settings: CallSettings = {}): AsyncIterable<unknown> {
    let pageToken = request.pageToken;
    do {
      const page = (await call({ ...request, pageToken }, settings)) as Fields;
      yield* page[items] as readonly unknown[];
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  };
}
