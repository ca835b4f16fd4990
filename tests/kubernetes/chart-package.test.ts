import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { writeChart } from "../../scripts/packages/chart.mjs";
import { workspaceRoot } from "../support/workspace.ts";

const folder = mkdtempSync(join(tmpdir(), "rollcall-chart-package-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const VERSION = "1.2.3";
const TIME_S = 1_767_225_600;
const unpack = (file: string, name: string) => {
  const out = join(folder, name);
  mkdirSync(out);
  execFileSync("tar", ["-xf", file, "-C", out]);
  return out;
};
const digestOf = (content: Buffer) => `sha256:${createHash("sha256").update(content).digest("hex")}`;

async function pack(name: string) {
  const out = join(folder, name);
  mkdirSync(out);
  const names = await writeChart(out, { version: VERSION, timeS: TIME_S, work: join(folder, `${name}-work`) });
  return { names, files: names.map((it) => join(out, it)) as [string, string] };
}

describe("writeChart()", () => {
  let first: Awaited<ReturnType<typeof pack>>;
  beforeAll(async () => {
    first = await pack("first");
  });

  it("should write the chart with the files behind its links, and without tests", () => {
    expect(first.names).toEqual([`rollcall-chart-${VERSION}.tgz`, `rollcall-chart-${VERSION}.oci.tar`]);
    const root = join(unpack(first.files[0], "chart"), "rollcall");
    const packed = readdirSync(root, { recursive: true }).map(String);
    expect(packed).toEqual(expect.arrayContaining(["Chart.yaml", "README.md", "templates/NOTES.txt"]));
    expect(packed.filter((it) => it.endsWith(".test.yaml"))).toEqual([]);
    const alerts = "monitoring/alerts.yaml";
    expect(readFileSync(join(root, alerts), "utf8")).toBe(readFileSync(join(workspaceRoot, "deploy", alerts), "utf8"));
  });

  it("should write an OCI layout with the artifact that Helm expects, all digests correct", () => {
    const root = unpack(first.files[1], "layout");
    const read = (name: string) => readFileSync(join(root, name));
    const blob = ({ digest, size }: { readonly digest: string; readonly size: number }) => {
      const content = read(`blobs/sha256/${digest.replace("sha256:", "")}`);
      expect([digestOf(content), content.length]).toEqual([digest, size]);
      return content;
    };
    expect(JSON.parse(String(read("oci-layout")))).toEqual({ imageLayoutVersion: "1.0.0" });
    const { manifests } = JSON.parse(String(read("index.json")));
    expect(manifests).toMatchObject([{ annotations: { "org.opencontainers.image.ref.name": VERSION } }]);
    const { config, layers } = JSON.parse(String(blob(manifests[0])));
    expect([config.mediaType, layers.map((it: { readonly mediaType: string }) => it.mediaType)]).toEqual([
      "application/vnd.cncf.helm.config.v1+json",
      ["application/vnd.cncf.helm.chart.content.v1.tar+gzip"],
    ]);
    expect(JSON.parse(String(blob(config)))).toMatchObject({ name: "rollcall", apiVersion: "v2", type: "application" });
    expect(blob(layers[0])).toEqual(readFileSync(first.files[0]));
  });

  it("should write the same bytes again", async () => {
    const second = await pack("second");
    expect(second.files.map((file) => digestOf(readFileSync(file)))).toEqual(
      first.files.map((file) => digestOf(readFileSync(file))),
    );
  });
});
