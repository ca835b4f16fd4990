import { once } from "node:events";
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RegistryService } from "../libs/api/src/gen/rollcall/registry/v1/registry_pb.ts";
import { endGrpcCalls, grpcCall } from "./support/grpc-call.ts";

let server: Http2Server;
const sessions: ServerHttp2Session[] = [];
beforeAll(async () => {
  server = createServer();
  server.on("session", (session) => sessions.push(session));
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.respond({ ":status": 200, "grpc-status": "0" }, { endStream: true });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  endGrpcCalls();
  server.close();
});

describe("grpcCall()", () => {
  it.each(["in order", "at once"])("should call again after the server has ended the session: %s", async (how) => {
    const { port } = server.address() as AddressInfo;
    const call = () => grpcCall(`http://127.0.0.1:${port}`, RegistryService.method.getNode, null);
    expect(await call()).toBe("ok");
    const session = sessions.at(-1);
    const closed = session === undefined ? null : once(session, "close");
    if (how === "in order") session?.close();
    else session?.destroy();
    await closed;
    expect(await Promise.all([call(), call()])).toEqual(["ok", "ok"]);
    expect(await call()).toBe("ok");
  });
});
