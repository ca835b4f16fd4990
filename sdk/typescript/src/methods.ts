import type { DescMessage, DescMethod, DescService, Message, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { GenService } from "@bufbuild/protobuf/codegenv2";
import { createClient, type Transport } from "@connectrpc/connect";

/** How one call is made. */
export interface CallSettings {
  /** Ends the call, its retries included: it fails with the reason of the signal, an AbortError unless one is given. */
  readonly signal?: AbortSignal;
  /** How long the call may take, its retries included. Streams have no limit unless one is given. */
  readonly timeoutMs?: number;
}

/** A method with one answer. Rejects with RollcallError. */
export type UnaryMethod<I extends DescMessage, O extends DescMessage> = ((
  request?: MessageInitShape<I>,
  settings?: CallSettings,
) => Promise<MessageShape<O>>) &
  Paged<I, MessageShape<O>>;

/** A method that answers a stream: iterating opens it, and ends it. Iterating throws RollcallError. */
export type StreamMethod<I extends DescMessage, O extends DescMessage> = (
  request?: MessageInitShape<I>,
  settings?: CallSettings,
) => AsyncIterable<MessageShape<O>>;

/** What a method that answers pages has besides. */
export type Paged<I extends DescMessage, Page> = Page extends { nextPageToken: string }
  ? {
      /** Every item of all pages; `timeoutMs` is a page's. */
      each(request?: MessageInitShape<I>, settings?: CallSettings): AsyncIterable<ItemOf<Page>>;
    }
  : unknown;

/** The messages of the one list that a page has. */
export type ItemOf<Page> = {
  [K in keyof Page]-?: Page[K] extends (infer Item)[] ? (Item extends Message ? Item : never) : never;
}[keyof Page];

/** The methods of a service, by their names in camelCase. */
export type MethodsOf<S extends DescService> =
  S extends GenService<infer Shape>
    ? {
        readonly [K in keyof Shape]: Shape[K]["methodKind"] extends "server_streaming"
          ? StreamMethod<Shape[K]["input"], Shape[K]["output"]>
          : UnaryMethod<Shape[K]["input"], Shape[K]["output"]>;
      }
    : never;

/** A service's methods over a transport. */
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

/** The field that holds a page's items; null for a method without pages. */
function itemsOf({ methodKind, output }: DescMethod): string | null {
  if (methodKind !== "unary" || !output.fields.some(({ localName }) => localName === "nextPageToken")) return null;
  const list = output.fields.find(
    ({ fieldKind, ...field }) => fieldKind === "list" && "listKind" in field && field.listKind === "message",
  );
  return list?.localName ?? null;
}

/** Connect leaves a stream open that is no longer iterated. */
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
