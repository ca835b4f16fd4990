import {
  clone,
  create,
  createFileRegistry,
  type DescMethodBiDiStreaming,
  type DescService,
  fromBinary,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import { type DescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "@rollcall/api/google/rpc/error_details_pb";
import { ServerReflection, ServerReflectionRequestSchema } from "@rollcall/api/grpc/reflection/v1/reflection_pb";
import { ReflectionIndex } from "./reflection-index.ts";

type ReflectionMethod = DescMethodBiDiStreaming;

/** A reflection service under one of its two names. It does not depend on the kind of server. */
export interface ReflectionService {
  readonly service: DescService;
  readonly method: ReflectionMethod;
  answer(request: Message): Message;
}

/** Create the reflection services, v1 and v1alpha. They describe these services and themselves. */
export function reflectionServices(services: readonly DescService[]): readonly ReflectionService[] {
  const both: readonly DescService[] = [ServerReflection, reflectionAlpha()];
  // Add the types of error details, which no method refers to. Without them, clients that rely on reflection show
  // bytes.
  const index = new ReflectionIndex([...services, ...both], [file_google_rpc_error_details]);
  return both.flatMap((service) =>
    service.methods
      .filter((method): method is ReflectionMethod => method.methodKind === "bidi_streaming")
      .map((method) => ({ service, method, answer: answerFor(method, index) })),
  );
}

function answerFor({ input, output }: ReflectionMethod, index: ReflectionIndex): (request: Message) => Message {
  return (request) => {
    // Both versions have the same encoding, so decode every request as v1.
    const bytes = toBinary(input, request);
    const question = fromBinary(ServerReflectionRequestSchema, bytes);
    return create(output, {
      validHost: question.host,
      originalRequest: fromBinary(input, bytes),
      messageResponse: index.answer(question.messageRequest),
    });
  };
}

/** Serve reflection on a Connect router. */
export function routeReflection(router: ConnectRouter, reflection: readonly ReflectionService[]): void {
  for (const { method, answer } of reflection) {
    router.rpc(method, async function* (requests: AsyncIterable<Message>) {
      for await (const request of requests) yield answer(request);
    });
  }
}

const V1 = "grpc.reflection.v1";
const ALPHA = "grpc.reflection.v1alpha";

/**
 * The reflection service under the name v1alpha, which older tools use. It differs from v1 only in the package, so
 * its descriptor is derived from that of v1.
 */
function reflectionAlpha(): DescService {
  const proto = clone(FileDescriptorProtoSchema, ServerReflection.file.proto);
  proto.name = "grpc/reflection/v1alpha/reflection.proto";
  proto.package = ALPHA;
  for (const message of proto.messageType) renameTypes(message);
  for (const method of proto.service.flatMap((service) => service.method)) {
    method.inputType = renamed(method.inputType);
    method.outputType = renamed(method.outputType);
  }
  const registry = createFileRegistry(proto, () => undefined);
  const service = registry.getService(`${ALPHA}.ServerReflection`);
  if (service === undefined) throw new Error("grpc.reflection.v1alpha could not be made from v1");
  return service;
}

function renameTypes(message: DescriptorProto): void {
  for (const field of message.field) field.typeName = renamed(field.typeName);
  for (const nested of message.nestedType) renameTypes(nested);
}

function renamed(typeName: string): string {
  return typeName.startsWith(`.${V1}.`) ? `.${ALPHA}.${typeName.slice(V1.length + 2)}` : typeName;
}
