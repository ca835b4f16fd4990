import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { TestAuthority } from "../../../libs/testkit/src/certificates.ts";
import { createTestDatabase, type TestDatabase } from "../../../libs/testkit/src/index.ts";
import { TestIssuer } from "../../../libs/testkit/src/test-issuer.ts";
import { bundledMain } from "../../../services/rollcall/src/testing/bundled-main.ts";
import { type Container, containersOf, type Manifest } from "../../kubernetes/manifests.ts";
import { type Balancer, startBalancer } from "./balancer.ts";
import { type Pod, startPod } from "./pod.ts";
import { makePodNetwork, type PodNetwork } from "./pod-network.ts";
import { imageRoot, type PodData } from "./pod-root.ts";

const NAMESPACE = "rollcall";
const ISSUER = "https://kubernetes.default.svc.cluster.local";
export const ADMIN_TOKEN = "the-first-token-of-a-test-cluster";

/**
 * Runs manifests without a cluster. Each pod is a process with its own network and root, Services are balancers, and
 * an HTTPS server replaces the API server.
 */
export interface TestCluster {
  /** The authority that signed the control plane's certificate, in PEM. */
  readonly ca: string;
  addressOf(service: string): string;
  /** Start a pod of a Deployment, DaemonSet or Job, on a machine. */
  start(owner: string, node: string): Promise<Pod>;
  /** Put another machine's name into the tokens of pods on one machine. */
  misname(node: string, named: string): void;
  dispose(): Promise<void>;
}

/** Create a cluster from the objects in a manifest file. */
export async function makeTestCluster(manifests: readonly Manifest[]): Promise<TestCluster> {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-kubernetes-"));
  const authority = new TestAuthority();
  const database = await createTestDatabase();
  const network = await makePodNetwork();
  const issuer = new TestIssuer();
  await issuer.start();
  const closing: (() => unknown)[] = [];
  const pods: { readonly owner: string; readonly pod: Pod }[] = [];
  const names = new Map<string, string>();
  const addresses = new Map<string, string>();
  const tokenOf = async (node: string, account: string, audience = "https://kubernetes") => {
    const own = { namespace: NAMESPACE, serviceaccount: { name: account }, node: { name: names.get(node) ?? node } };
    return issuer.token({ "kubernetes.io": own }, { audience, issuer: ISSUER });
  };

  const apiServer = await startApiServer(network, authority, issuer, closing);
  const postgres = await startPostgres(network, database, closing);
  const services = manifests.filter(({ kind, spec }) => kind === "Service" && spec?.clusterIP !== "None");
  for (const { metadata, spec } of services) {
    const address = await network.addAddress();
    addresses.set(metadata.name, address);
    for (const { port } of spec?.ports ?? []) {
      const targets = () =>
        pods
          .filter(({ owner, pod }) => owner === metadata.name && pod.isReady)
          .map(({ pod }) => ({ host: pod.address, port }));
      const balancer: Balancer = await startBalancer({ host: address, port }, targets);
      closing.push(() => balancer.close());
    }
  }
  const hosts = [
    ["127.0.0.1", "localhost"],
    [apiServer, "kubernetes.default.svc"],
    ...services.map(({ metadata }) => [addresses.get(metadata.name), `${metadata.name}.${NAMESPACE}.svc`]),
  ];
  const certificate = authority.issue({
    usage: "server",
    names: services.flatMap(({ metadata }) => [metadata.name, `${metadata.name}.${NAMESPACE}.svc`]),
  });
  const ca = readFileSync(authority.caFile, "utf8");
  const configMaps = manifests.filter(({ kind }) => kind === "ConfigMap");
  const common: Omit<PodData, "token" | "hostPath"> = {
    configMaps: {
      ...Object.fromEntries(configMaps.map(({ metadata, data = {} }) => [metadata.name, data])),
      "kube-root-ca.crt": { "ca.crt": ca },
    },
    secrets: {
      "rollcall-database": { url: postgres },
      "rollcall-admin-token": { token: ADMIN_TOKEN },
      "rollcall-tls": { "tls.crt": certificate.certPem, "tls.key": certificate.keyPem, "ca.crt": ca },
    },
  };
  const containers = containersOf(manifests);
  const image = imageRoot(dirname(dirname(await bundledMain())));
  let made = 0;
  return {
    ca,
    addressOf: (service) => addresses.get(service) ?? "",
    misname: (node, named) => {
      names.set(node, named);
    },
    start: async (owner, node) => {
      const container: Container | undefined = containers.find((it) => it.owner === owner);
      if (container === undefined) throw new Error(`there is no ${owner}`);
      made += 1;
      const account = container.pod.serviceAccountName ?? "default";
      const pod = await startPod({
        ...{ name: `${owner}-${made}`, node, container, folder, image },
        network: await network.addPod(),
        data: {
          ...common,
          token: (audience) => tokenOf(node, account, audience),
          hostPath: (path) => join(folder, "machines", node, path),
        },
        hosts: `${hosts.map((line) => line.join(" ")).join("\\n")}\\n`,
        env: { KUBERNETES_SERVICE_HOST: apiServer, KUBERNETES_SERVICE_PORT: "443" },
      });
      pods.push({ owner, pod });
      return pod;
    },
    dispose: async () => {
      for (const { pod } of pods) pod.kill();
      await Promise.all(pods.map(({ pod }) => pod.exit()));
      for (const close of closing.reverse()) await close();
      await issuer.stop();
      await network.close();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
      rmSync(authority.dir, { recursive: true, force: true });
    },
  };
}

/** Start a server that gives clients with a token the issuer's keys and the labels of nodes. */
async function startApiServer(
  network: PodNetwork,
  authority: TestAuthority,
  issuer: TestIssuer,
  closing: (() => unknown)[],
): Promise<string> {
  const address = await network.addAddress();
  const { certPem, keyPem } = authority.issue({ usage: "server", names: [address, "kubernetes.default.svc"] });
  const server = createServer({ cert: certPem, key: keyPem }, async (request, response) => {
    const { url = "", headers } = request;
    const keys = async () => {
      const asked = await fetch(`${issuer.url}/jwks`, { headers: { accept: headers.accept ?? "*/*" } });
      return [asked.status, await asked.json()] as const;
    };
    const isKnown = headers.authorization?.startsWith("Bearer ey") ?? false;
    const node = /^\/api\/v1\/nodes\/(.+)$/.exec(url)?.[1];
    const answer = !isKnown
      ? [401, {}]
      : url === "/openid/v1/jwks"
        ? await keys()
        : node === undefined
          ? [404, {}]
          : [200, { kind: "Node", metadata: { name: node, labels: labelsOf(node) } }];
    response.writeHead(Number(answer[0]), { "content-type": "application/json" }).end(JSON.stringify(answer[1]));
  });
  server.listen(443, address);
  await once(server, "listening");
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return address;
}

function labelsOf(node: string): Readonly<Record<string, string>> {
  return { "kubernetes.io/hostname": node, "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": "zone-a" };
}

/** Provide the test run's Postgres on an address that pods can reach. */
async function startPostgres(network: PodNetwork, { url }: TestDatabase, closing: (() => unknown)[]): Promise<string> {
  const host = await network.addAddress();
  const real = new URL(url);
  const socket = real.searchParams.get("host") ?? decodeURIComponent(real.hostname);
  const port = Number(real.port || 5432);
  const target = socket.startsWith("/") ? { path: `${socket}/.s.PGSQL.${port}` } : { host: socket, port };
  const balancer = await startBalancer({ host, port: 5432 }, () => [target]);
  closing.push(() => balancer.close());
  return `postgres://${real.username}:${real.password}@${host}:5432${real.pathname}`;
}
