import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { Manifest } from "../../kubernetes/manifests.ts";

interface SecretServerOptions {
  /** Objects whose kinds the server knows. Helm looks up the kind of every object that it renders. */
  readonly known: readonly Manifest[];
  readonly namespace: string;
  readonly kubeconfig: string;
}

/** An API server that has only secrets, for charts that look them up. */
export interface SecretServer {
  /** A file for KUBECONFIG. */
  readonly kubeconfig: string;
  close(): Promise<void>;
}

/** Serve secrets of one namespace, and the names of the kinds of `known`. Writes a kubeconfig to a file. */
export async function serveSecrets(
  secrets: readonly Manifest[],
  { known, namespace, kubeconfig }: SecretServerOptions,
): Promise<SecretServer> {
  const lists = discoveryOf(known);
  const server = createServer(({ url = "" }, response) => {
    const [path = ""] = url.split("?");
    const name = path.startsWith(`/api/v1/namespaces/${namespace}/secrets/`) ? path.split("/").at(-1) : undefined;
    const found = lists[path] ?? secrets.find(({ metadata }) => metadata.name === name);
    const missing = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "NotFound", code: 404 };
    const headers = { "content-type": "application/json" };
    response.writeHead(found === undefined ? 404 : 200, headers).end(JSON.stringify(found ?? missing));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the API server listens on no port");
  const cluster = { name: "test", cluster: { server: `http://127.0.0.1:${address.port}` } };
  const context = { name: "test", context: { cluster: "test", user: "test" } };
  const config = { apiVersion: "v1", kind: "Config", "current-context": "test", clusters: [cluster] };
  writeFileSync(kubeconfig, JSON.stringify({ ...config, contexts: [context], users: [{ name: "test", user: {} }] }));
  return {
    kubeconfig,
    close: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Describe the kinds of objects as API servers do, keyed by path. */
function discoveryOf(known: readonly Manifest[]): Readonly<Record<string, object>> {
  const versions = [...new Set(known.map(({ apiVersion }) => apiVersion))];
  const groups = versions
    .filter((it) => it.includes("/"))
    .map((groupVersion) => {
      const [name, version] = groupVersion.split("/");
      return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
    });
  const resourcesOf = (groupVersion: string) => {
    const kinds = new Set(known.flatMap(({ apiVersion, kind }) => (apiVersion === groupVersion ? [kind] : [])));
    return [...kinds].map((kind) => {
      const singularName = kind.toLowerCase();
      const name = singularName.endsWith("y") ? `${singularName.slice(0, -1)}ies` : `${singularName}s`;
      return { name, singularName, kind, namespaced: !kind.startsWith("Cluster"), verbs: ["get"] };
    });
  };
  return {
    "/version": { major: "1", minor: "36", gitVersion: "v1.36.3" },
    "/api": { kind: "APIVersions", versions: ["v1"] },
    "/apis": { kind: "APIGroupList", apiVersion: "v1", groups },
    ...Object.fromEntries(
      versions.map((groupVersion) => [
        groupVersion.includes("/") ? `/apis/${groupVersion}` : `/api/${groupVersion}`,
        { kind: "APIResourceList", groupVersion, resources: resourcesOf(groupVersion) },
      ]),
    ),
  };
}
