import { create, createFileRegistry, type DescMethod, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from "../../libs/api/src/gen/grpc/reflection/v1/reflection_pb.ts";
import type { Sender } from "./send.ts";
import { envelope } from "./wire-request.ts";

const PATH = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/** List every method that a port serves, according to its reflection. */
export async function servedMethods(sender: Sender): Promise<readonly DescMethod[]> {
  const names = (await ask(sender, "listServices", "")).flatMap(({ messageResponse: it }) =>
    it.case === "listServicesResponse" ? it.value.service.map(({ name }) => name) : [],
  );
  const files = new Map<string, FileDescriptorProto>();
  for (const name of names) {
    for (const { messageResponse: it } of await ask(sender, "fileContainingSymbol", name)) {
      if (it.case !== "fileDescriptorResponse") throw new Error(`no descriptor of ${name}`);
      for (const bytes of it.value.fileDescriptorProto) {
        const file = fromBinary(FileDescriptorProtoSchema, bytes);
        files.set(file.name, file);
      }
    }
  }
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: inOrder(files) }));
  return names.flatMap((name) => registry.getService(name)?.methods ?? []);
}

async function ask(sender: Sender, question: "listServices" | "fileContainingSymbol", value: string) {
  const request = create(ServerReflectionRequestSchema, {
    messageRequest: { case: question, value },
  });
  const { body } = await sender.send({
    protocol: "grpc",
    http: 2,
    verb: "POST",
    path: PATH,
    headers: { "content-type": "application/grpc" },
    body: envelope(toBinary(ServerReflectionRequestSchema, request)),
    isStream: false,
  });
  return envelopesIn(body).map((it) => fromBinary(ServerReflectionResponseSchema, it));
}

/** Extract the messages of a gRPC response. */
function envelopesIn(body: Buffer): readonly Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at + 5 <= body.length; ) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    found.push(body.subarray(at + 5, end));
    at = end;
  }
  return found;
}

/** Order files so that the dependencies of a file come before it. */
function inOrder(files: ReadonlyMap<string, FileDescriptorProto>): FileDescriptorProto[] {
  const ordered = new Set<FileDescriptorProto>();
  const visit = (name: string) => {
    const file = files.get(name);
    if (file === undefined || ordered.has(file)) return;
    for (const needed of file.dependency) visit(needed);
    ordered.add(file);
  };
  for (const name of files.keys()) visit(name);
  return [...ordered];
}
