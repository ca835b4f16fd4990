import { create, type DescFile, type DescMessage, type DescService, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import type { ServerReflectionRequest } from "@rollcall/api/grpc/reflection/v1/reflection_pb";

/** A response of the reflection service, without the request that the service echoes. */
export type ReflectionAnswer =
  | { readonly case: "listServicesResponse"; readonly value: { service: { name: string }[] } }
  | {
      readonly case: "fileDescriptorResponse";
      readonly value: { fileDescriptorProto: Uint8Array[] };
    }
  | {
      readonly case: "allExtensionNumbersResponse";
      readonly value: { baseTypeName: string; extensionNumber: number[] };
    }
  | { readonly case: "errorResponse"; readonly value: { errorCode: number; errorMessage: string } };

type Question = ServerReflectionRequest["messageRequest"];

/**
 * The descriptors of a set of services and of the types that they use, including options and well-known
 * types.
 */
export class ReflectionIndex {
  readonly #services: readonly string[];
  readonly #files = new Map<string, DescFile>();
  readonly #symbols = new Map<string, DescFile>();
  readonly #bytes = new Map<DescFile, Uint8Array>();

  /** @param others files that clients need although no service refers to them. */
  constructor(services: readonly DescService[], others: readonly DescFile[] = []) {
    this.#services = services.map((service) => service.typeName);
    for (const service of services) this.#addFile(service.file);
    for (const file of others) this.#addFile(file);
  }

  /** Answer one request. For an unknown name, the protocol requires a response instead of an error. */
  answer(question: Question): ReflectionAnswer {
    switch (question.case) {
      case "listServices":
        return {
          case: "listServicesResponse",
          value: { service: this.#services.map((name) => ({ name })) },
        };
      case "fileByFilename":
        return this.#fileAnswer(this.#files.get(question.value), question.value);
      case "fileContainingSymbol":
        return this.#fileAnswer(this.#symbols.get(question.value), question.value);
      case "fileContainingExtension": {
        const { containingType, extensionNumber } = question.value;
        const file = this.#extensions().find(
          (it) => it.extendee === containingType && it.number === extensionNumber,
        )?.file;
        return this.#fileAnswer(file, `extension ${extensionNumber} of ${containingType}`);
      }
      case "allExtensionNumbersOfType":
        return this.#extensionNumbers(question.value);
      default:
        return notFound("kind of reflection request", Code.InvalidArgument);
    }
  }

  #fileAnswer(file: DescFile | undefined, what: string): ReflectionAnswer {
    if (file === undefined) return notFound(what, Code.NotFound);
    const files = withDependencies(file).map((it) => this.#encoded(it));
    return { case: "fileDescriptorResponse", value: { fileDescriptorProto: files } };
  }

  #extensionNumbers(typeName: string): ReflectionAnswer {
    if (!this.#symbols.has(typeName)) return notFound(typeName, Code.NotFound);
    const extensionNumber = this.#extensions()
      .filter((it) => it.extendee === typeName)
      .map((it) => it.number);
    return {
      case: "allExtensionNumbersResponse",
      value: { baseTypeName: typeName, extensionNumber },
    };
  }

  #extensions(): { extendee: string; number: number; file: DescFile }[] {
    return [...this.#files.values()].flatMap((file) =>
      file.extensions.map(({ extendee, number }) => ({
        extendee: extendee.typeName,
        number,
        file,
      })),
    );
  }

  #encoded(file: DescFile): Uint8Array {
    let bytes = this.#bytes.get(file);
    if (bytes === undefined) {
      bytes = toBinary(FileDescriptorProtoSchema, protoOf(file));
      this.#bytes.set(file, bytes);
    }
    return bytes;
  }

  #addFile(file: DescFile): void {
    const name = protoOf(file).name;
    if (this.#files.has(name)) return;
    this.#files.set(name, file);
    for (const dependency of file.dependencies) this.#addFile(dependency);
    for (const message of file.messages) this.#addMessage(message, file);
    for (const { typeName } of [...file.enums, ...file.extensions]) this.#symbols.set(typeName, file);
    for (const service of file.services) {
      this.#symbols.set(service.typeName, file);
      for (const { name: method } of service.methods) {
        this.#symbols.set(`${service.typeName}.${method}`, file);
      }
    }
  }

  #addMessage(message: DescMessage, file: DescFile): void {
    this.#symbols.set(message.typeName, file);
    for (const field of message.fields) this.#symbols.set(`${message.typeName}.${field.name}`, file);
    for (const { typeName } of [...message.nestedEnums, ...message.nestedExtensions]) {
      this.#symbols.set(typeName, file);
    }
    for (const nested of message.nestedMessages) this.#addMessage(nested, file);
  }
}

function notFound(what: string, errorCode: Code): ReflectionAnswer {
  return { case: "errorResponse", value: { errorCode, errorMessage: `${what} not found` } };
}

/** List a file and its dependencies, without duplicates. A file comes before its own dependencies. */
function withDependencies(file: DescFile): readonly DescFile[] {
  const needed: DescFile[] = [];
  const seen = new Set<DescFile>();
  const visit = (current: DescFile) => {
    if (seen.has(current)) return;
    seen.add(current);
    for (const dependency of current.dependencies) visit(dependency);
    needed.push(current);
  };
  visit(file);
  return needed.reverse();
}

/**
 * The descriptor of a file, with the name that other files import. Generated code may have removed the
 * suffix .proto from the name.
 */
function protoOf(file: DescFile): FileDescriptorProto {
  if (file.proto.name.endsWith(".proto")) return file.proto;
  return create(FileDescriptorProtoSchema, { ...file.proto, name: `${file.proto.name}.proto` });
}
