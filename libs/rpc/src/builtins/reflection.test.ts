import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { create, createFileRegistry, fromBinary, getExtension, hasExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type Client, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ServerReflection } from "@rollcall/api/grpc/reflection/v1/reflection_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { createMetrics, silentLogger } from "@rollcall/process";
import { needs } from "@rollcall/testkit/needs";
import { healthRoute } from "../../test/health-route.ts";
import { RpcFixture } from "../../test/rpc-fixture.ts";
import { createGrpcServer } from "../grpc/grpc-server.ts";
import type { RunningServer } from "../server-options.ts";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const BUF = join(ROOT, "node_modules", ".bin", "buf");
const run = promisify(execFile);
const hasGrpcurl = spawnSync("grpcurl", ["-version"]).status === 0;
const GET_NODE = "rollcall.registry.v1.RegistryService/GetNode";

let fixture: RpcFixture;
let grpcServer: RunningServer;
beforeAll(async () => {
  fixture = await RpcFixture.start();
  grpcServer = await createGrpcServer({
    host: "127.0.0.1",
    port: 0,
    routes: [healthRoute({})],
    log: silentLogger,
    metrics: createMetrics({ defaults: false }),
  });
});
afterAll(async () => await Promise.all([fixture.stop(), grpcServer.close()]));

async function bufCurl(url: string, ...flags: string[]): Promise<string> {
  const { stdout } = await run(BUF, ["curl", ...flags, url], { timeout: 30_000 });
  return stdout;
}

type Question =
  Parameters<Client<typeof ServerReflection>["serverReflectionInfo"]>[0] extends AsyncIterable<infer R> ? R : never;

async function ask(question: Question) {
  const client = createClient(ServerReflection, fixture.transport("grpc"));
  for await (const { messageResponse } of client.serverReflectionInfo(once(question))) return messageResponse;
  throw new Error("no answer");
}

async function* once<T>(value: T) {
  yield value;
}

describe("reflection on the Connect server", () => {
  it.each(["grpc", "grpcweb", "connect"])("should let buf curl call by name over %s", async (protocol) => {
    const reflection = protocol === "connect" ? "grpc" : protocol;
    const output = await bufCurl(
      `${fixture.url}/${GET_NODE}`,
      `--protocol=${protocol}`,
      `--reflect-protocol=${reflection === "grpc" ? "grpc-v1" : "grpc-v1alpha"}`,
      "--http2-prior-knowledge",
      "--header=authorization: Bearer viewer-token",
      '--data={"node":"n1"}',
    );
    expect(JSON.parse(output)).toEqual({ node: { id: "n1" } });
  });

  needs("grpcurl", hasGrpcurl).it("should let grpcurl print the details of an error", async () => {
    const words = ["-plaintext", "-d", '{"node":"n1"}', new URL(fixture.url).host, GET_NODE];
    const { stderr } = await run("grpcurl", words).catch((error: unknown) => error as { stderr: string });
    expect(stderr).toMatch(/"@type": "type\.googleapis\.com\/google\.rpc\.ErrorInfo",[\s\S]*"reason": "[A-Z_]+"/);
  });

  it("should list every service, its own and grpc.health.v1 included", async () => {
    const output = await bufCurl(fixture.url, "--list-services", "--http2-prior-knowledge", "--protocol=grpc");
    expect(output.trim().split("\n").sort()).toEqual([
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
      "rollcall.health.v1.HealthService",
      "rollcall.registry.v1.RegistryService",
    ]);
  });

  it("should return complete files: options, rules and well-known types", async () => {
    const answer = await ask({
      messageRequest: {
        case: "fileContainingSymbol",
        value: "rollcall.registry.v1.GetNodeRequest.node",
      },
    });
    if (answer.case !== "fileDescriptorResponse") throw new Error(`got ${answer.case}`);
    const file = answer.value.fileDescriptorProto.map((it) => fromBinary(FileDescriptorProtoSchema, it));
    const names = file.map((it) => it.name);
    expect(names[0]).toBe("rollcall/registry/v1/registry.proto");
    for (const name of [
      "buf/validate/validate.proto",
      "google/protobuf/timestamp.proto",
      "google/protobuf/descriptor.proto",
    ]) {
      expect(names).toContain(name);
    }
    expect(new Set(names).size).toBe(names.length);
    const set = create(FileDescriptorSetSchema, { file: file.reverse() });
    const registry = createFileRegistry(set);
    const field = registry.getMessage("rollcall.registry.v1.GetNodeRequest")?.field.node;
    const rules = registry.getExtension("buf.validate.field");
    if (field?.proto.options === undefined || rules === undefined) throw new Error("no rules");
    expect(hasExtension(field.proto.options, rules)).toBe(true);
    expect(getExtension(field.proto.options, rules)).toMatchObject({ type: { case: "string" } });
    expect(registry.getService(RegistryService.typeName)?.methods).toHaveLength(RegistryService.methods.length);
  });

  it.each([
    ["fileByFilename", "rollcall/node/v1/node.proto", "fileDescriptorResponse"],
    ["fileByFilename", "google/protobuf/timestamp.proto", "fileDescriptorResponse"],
    ["fileByFilename", "nowhere.proto", "errorResponse"],
    ["fileContainingSymbol", "rollcall.registry.v1.RegistryService.ListNodes", "fileDescriptorResponse"],
    ["fileContainingSymbol", "rollcall.node.v1.NodeType", "fileDescriptorResponse"],
    ["fileContainingSymbol", "buf.validate.field", "fileDescriptorResponse"],
    ["fileContainingSymbol", "google.rpc.ErrorInfo", "fileDescriptorResponse"],
    ["fileContainingSymbol", "google.rpc.RetryInfo", "fileDescriptorResponse"],
    ["fileContainingSymbol", "google.rpc.BadRequest", "fileDescriptorResponse"],
    ["fileContainingSymbol", "rollcall.Nothing", "errorResponse"],
    ["allExtensionNumbersOfType", "google.protobuf.FieldOptions", "allExtensionNumbersResponse"],
    ["allExtensionNumbersOfType", "rollcall.node.v1.Node", "allExtensionNumbersResponse"],
    ["allExtensionNumbersOfType", "rollcall.Nothing", "errorResponse"],
  ] as const)("should answer %s %s with %s", async (kind, value, expected) => {
    expect((await ask({ host: "h", messageRequest: { case: kind, value: value as string } })).case).toBe(expected);
  });

  it("should find extensions by number, and answer an empty question with an error", async () => {
    const known = { containingType: "google.protobuf.FieldOptions", extensionNumber: 1159 };
    const file = await ask({ messageRequest: { case: "fileContainingExtension", value: known } });
    expect(file.case).toBe("fileDescriptorResponse");
    const unknown = { ...known, extensionNumber: 1 };
    const none = await ask({ messageRequest: { case: "fileContainingExtension", value: unknown } });
    expect(none).toMatchObject({ case: "errorResponse", value: { errorCode: 5 } });
    expect(await ask({})).toMatchObject({ case: "errorResponse", value: { errorCode: 3 } });
  });
});

describe("reflection on the grpc-js server", () => {
  it.each(["grpc-v1", "grpc-v1alpha"])("should let buf curl resolve it by %s", async (version) => {
    const url = `http://127.0.0.1:${grpcServer.port}`;
    const flags = ["--protocol=grpc", "--http2-prior-knowledge", `--reflect-protocol=${version}`];
    const services = await bufCurl(url, "--list-services", ...flags);
    expect(services).toContain("rollcall.health.v1.HealthService");
    const health = await bufCurl(`${url}/grpc.health.v1.Health/Check`, ...flags, "--data={}");
    expect(JSON.parse(health)).toEqual({ status: "SERVING" });
  });
});
