import { describe, expect, it } from "@jest/globals";
import { problemIn } from "./evaluate.ts";
import type { Answer } from "./send.ts";
import type { WireRequest } from "./wire-request.ts";

const request: WireRequest = {
  protocol: "connect-json",
  http: 1,
  verb: "POST",
  path: "/rollcall.registry.v1.RegistryService/GetNode",
  headers: {},
  body: new Uint8Array(),
  isStream: false,
};
const json = { "content-type": "application/json" };

function answer(changes: Partial<Answer>, body: string = ""): Answer {
  return { status: 200, headers: {}, end: "whole", body: Buffer.from(body), ...changes };
}

function refused(code: string, message: string): Answer {
  const body = { code, message, details: [{ debug: { domain: "rollcall.io" } }] };
  return answer({ status: 400, headers: json }, JSON.stringify(body));
}

describe("problemIn()", () => {
  it.each([
    ["an answer", answer({ headers: json }, "{}")],
    ["a refusal", refused("invalid_argument", "node: must not be empty")],
    ["a message that only says it is compressed", refused("internal", "COMPRESSION_NOT_NAMED")],
    ["a stream that is silent", answer({ end: "silent" })],
    ["a connection that was closed over too many bytes", answer({ end: "cut", status: 0 })],
    ["a page that is not there", answer({ status: 404 }, "not found")],
  ])("should have nothing against %s", (_, it) => {
    expect(problemIn(request, it)).toBeNull();
  });

  it.each([
    ["INTERNAL", refused("internal", "internal error")],
    ["UNKNOWN", refused("unknown", "")],
    ["an error without a reason", answer({ status: 404, headers: json }, '{"code":"not_found"}')],
    ["a bare 500", answer({ status: 500 })],
    ["no answer", answer({ end: "no answer in 90000 ms", status: 0 })],
    ["a stack", refused("aborted", "Error: x\n    at f (file.js:1:2)")],
    ["a path", refused("aborted", "cannot open /home/someone/data")],
    ["a driver's text", refused("aborted", 'invalid input syntax for type bigint: "x"')],
    ["SQL", refused("aborted", "select id from nodes where id = $1 limit")],
    ["SQL", refused("aborted", "update nodes set health = $1")],
    ["SQL", refused("aborted", 'insert into "nodes" ("id") values ($1)')],
    ["SQL", refused("aborted", "delete from nodes where id = $1")],
    ["a bug", refused("aborted", "Cannot read properties of undefined")],
  ])("should find %s", (_, it) => {
    expect(problemIn(request, it)).not.toBeNull();
  });

  it("should check trailers and encoded details", () => {
    const secret = Buffer.from("duplicate key value").toString("base64");
    const headers = { "grpc-status": "3", "grpc-message": "rollcall.io" };
    const inTrailers = { ...headers, "grpc-status-details-bin": secret };
    const grpc: WireRequest = { ...request, protocol: "grpc", http: 2 };
    expect(problemIn(grpc, answer({ headers: inTrailers }))).toMatch("driver");
    expect(problemIn(grpc, answer({ headers: { "grpc-status": "13" } }))).toMatch("13");
    expect(problemIn(grpc, answer({ headers }))).toBeNull();
  });
});
