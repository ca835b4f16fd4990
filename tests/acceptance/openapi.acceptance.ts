import { execFile } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createUpFixture, type UpFixture } from "../../services/rollcall/src/testing/up-fixture.ts";
import { commandBlocks } from "../support/readme-blocks.ts";
import { workspaceRoot } from "../support/workspace.ts";

const LIMIT_MS = 600_000;
const TOOLS = ["schemathesis==4.32.5", "openapi-spec-validator==0.9.0"];
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_schema_conformance",
].join();
const VALIDATE = "import json, sys; from openapi_spec_validator import validate; validate(json.load(sys.stdin))";

const run = promisify(execFile);

describe("the API's description", () => {
  let fixture: UpFixture;
  let tools: string;

  beforeAll(async () => {
    fixture = await createUpFixture();
    tools = await mkdtemp(join(tmpdir(), "rollcall-openapi-"));
    await run("python3", ["-m", "venv", tools], { timeout: LIMIT_MS });
    await run(join(tools, "bin/pip"), ["install", "--quiet", ...TOOLS], { timeout: LIMIT_MS });
    await fixture.up();
  }, LIMIT_MS);

  afterAll(async () => {
    await fixture.dispose();
    rmSync(tools, { recursive: true, force: true });
  });

  async function describedApi(): Promise<{ readonly text: string; readonly streams: readonly string[] }> {
    const answer = await fetch(`http://${fixture.server}/openapi.json`);
    const text = await answer.text();
    const { paths } = JSON.parse(text) as { readonly paths: Readonly<Record<string, { readonly post: object }>> };
    const streams = Object.entries(paths).filter(([, { post }]) => "x-rollcall-stream" in post);
    return { text, streams: streams.map(([path]) => path) };
  }

  it("should be valid OpenAPI 3.1", async () => {
    const { text } = await describedApi();
    const validated = run(join(tools, "bin/python"), ["-c", VALIDATE], { timeout: LIMIT_MS });
    validated.child.stdin?.end(text);
    expect(await validated).toEqual({ stdout: "", stderr: "" });
  });

  it("should be available to the commands of docs/openapi.md", async () => {
    const blocks = commandBlocks(readFileSync(join(workspaceRoot, "docs/openapi.md"), "utf8"));
    const outputs = new Map<string, string>();
    for (const { name, commands } of blocks) {
      const here = commands
        .replaceAll("127.0.0.1:7700", fixture.server)
        .replaceAll(".rollcall/", `${fixture.dataDirectory}/`);
      outputs.set(name, (await run("sh", ["-ec", here])).stdout);
    }
    expect(Object.fromEntries(outputs)).toEqual({
      describe: expect.stringMatching(/^\{"openapi":"3\.1\.0"/),
      call: expect.stringMatching(/^\{"nodes":\[/),
    });
  });

  it("should match the server's responses to valid and invalid requests", async () => {
    const { streams } = await describedApi();
    const token = readFileSync(join(fixture.dataDirectory, "admin-token"), "utf8").trim();
    const words = [
      ["run", `http://${fixture.server}/openapi.json`, "--header", `Authorization: Bearer ${token}`],
      ["--checks", CHECKS, "--phases", "examples,fuzzing", "--max-examples", "15", "--seed", "1"],
      ["--no-shrink", "--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"],
      streams.flatMap((path) => ["--exclude-path", path]),
    ].flat();
    // The report names what failed, and says how to send it again.
    const { stdout } = await run(join(tools, "bin/schemathesis"), words, { cwd: tools, timeout: LIMIT_MS }).catch(
      (error: { readonly stdout?: string }) => ({ stdout: error.stdout ?? String(error) }),
    );
    expect(stdout).toMatch(/No issues found/);
  });
});
