import { clone, createFileRegistry, type DescService } from "@bufbuild/protobuf";
import { type DescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { ServerReflection } from "@rollcall/api/grpc/reflection/v1/reflection_pb";

const V1 = "grpc.reflection.v1";
const ALPHA = "grpc.reflection.v1alpha";

/**
 * The v1alpha name of the reflection service, which older tools ask for. It is v1 in another package, byte for byte,
 * so its descriptor is made from that of v1.
 */
export function reflectionAlpha(): DescService {
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
