// Packs the chart: as the archive that Helm installs, and as an OCI artifact in an OCI layout, which a registry stores.
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, join, matchesGlob } from "node:path";
import { writeTar, writeTarGz } from "./archive.mjs";
import { WORKSPACE } from "./workspace.mjs";

const { parse } = createRequire(new URL("../../libs/config/package.json", import.meta.url))("yaml");

const CHART = join(WORKSPACE, "deploy/chart");
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const INDEX = "application/vnd.oci.image.index.v1+json";

/**
 * Write the chart to `out`. Returns the names of the files: NAME.tgz for `helm install`, and NAME.oci.tar. Their bytes
 * depend only on the chart and on the time.
 */
export async function writeChart(out, { version, timeS, work }) {
  const name = `rollcall-chart-${version}`;
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true });
  const ignored = (await readFile(join(CHART, ".helmignore"), "utf8")).split("\n").filter((line) => line !== "");
  const filter = (path) => !ignored.some((pattern) => matchesGlob(basename(path), pattern));
  // Helm expects the chart's files in a folder with its name, without links.
  await cp(CHART, join(work, "rollcall"), { recursive: true, dereference: true, filter });
  const archive = join(out, `${name}.tgz`);
  await writeTarGz(archive, { folder: work, entries: ["rollcall"], timeS });
  const layout = join(work, "layout");
  await writeLayout(layout, { archive: await readFile(archive), version, timeS });
  const entries = ["oci-layout", "index.json", "blobs"];
  await writeTar(join(out, `${name}.oci.tar`), { folder: layout, entries, timeS });
  return [`${name}.tgz`, `${name}.oci.tar`];
}

/** Write an OCI layout with one artifact of the types that Helm uses: the chart's description and its archive. */
async function writeLayout(folder, { archive, version, timeS }) {
  const blobs = join(folder, "blobs/sha256");
  await mkdir(blobs, { recursive: true });
  const put = async (mediaType, content) => {
    const digest = createHash("sha256").update(content).digest("hex");
    await writeFile(join(blobs, digest), content);
    return { mediaType, digest: `sha256:${digest}`, size: content.length };
  };
  const description = parse(await readFile(join(CHART, "Chart.yaml"), "utf8"));
  const json = (value) => Buffer.from(JSON.stringify(value));
  const manifest = await put(
    MANIFEST,
    json({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: await put("application/vnd.cncf.helm.config.v1+json", json(description)),
      layers: [await put("application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive)],
      annotations: {
        "org.opencontainers.image.title": description.name,
        "org.opencontainers.image.description": description.description,
        "org.opencontainers.image.version": description.version,
        "org.opencontainers.image.created": new Date(timeS * 1_000).toISOString(),
      },
    }),
  );
  const named = { ...manifest, annotations: { "org.opencontainers.image.ref.name": version } };
  await writeFile(join(folder, "index.json"), json({ schemaVersion: 2, mediaType: INDEX, manifests: [named] }));
  await writeFile(join(folder, "oci-layout"), json({ imageLayoutVersion: "1.0.0" }));
}
