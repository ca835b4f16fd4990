// Makes the list of a package's contents, as CycloneDX. It is made from the bundle, so it names the packages that are
// shipped and not all that are installed.
import { createHash } from "node:crypto";

/**
 * Make the document for a package of a kind, as JSON. `components` are npm packages, or have a `purl` of their own.
 * `timeS` is the time of the commit.
 */
export function sbomOf({ name, version, commit, timeS, components }) {
  const root = `pkg:generic/${name}@${version}`;
  const listed = components.map(toComponent);
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(timeS * 1000).toISOString(),
      component: {
        type: "application",
        "bom-ref": root,
        name,
        version,
        licenses: [{ license: { id: "Apache-2.0" } }],
        purl: root,
        ...(commit === undefined ? {} : { properties: [{ name: "rollcall:commit", value: commit }] }),
      },
    },
    components: listed,
    dependencies: [
      { ref: root, dependsOn: listed.map((component) => component["bom-ref"]) },
      ...listed.map((component) => ({ ref: component["bom-ref"] })),
    ],
  };
  const serialNumber = `urn:uuid:${uuidOf(JSON.stringify(document))}`;
  const { bomFormat, specVersion, ...rest } = document;
  return `${JSON.stringify({ bomFormat, specVersion, serialNumber, ...rest }, null, 2)}\n`;
}

function toComponent({ name, version, license, licenseName, integrity, type = "library", ...more }) {
  const { purl = `pkg:npm/${name.replace("@", "%40")}@${version}` } = more;
  return {
    type,
    "bom-ref": purl,
    name,
    version,
    ...(license === undefined ? {} : { licenses: [licenseOf(license)] }),
    ...(licenseName === undefined ? {} : { licenses: [{ license: { name: licenseName } }] }),
    ...(integrity === undefined ? {} : { hashes: [{ alg: "SHA-512", content: hexOf(integrity) }] }),
    purl,
  };
}

/** Name a single licence by its id, and several licences as an expression. */
function licenseOf(license) {
  return /[ ()]/.test(license) ? { expression: license } : { license: { id: license } };
}

function hexOf(integrity) {
  return Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex");
}

/** Make a UUID that depends only on the document. It has version 8, whose bits can be chosen freely. */
function uuidOf(text) {
  const hex = createHash("sha256").update(text).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    "-",
  );
}
