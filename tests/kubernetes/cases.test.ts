import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { CASES } from "../../scripts/render-manifests.mjs";
import { containersOf, type Manifest, renderedCase, templateOf, type Volume } from "./manifests.ts";
import { problemsOf } from "./schemas.ts";

/** Labels by which tools find the objects of a release. */
const STANDARD_LABELS = [
  "app.kubernetes.io/component",
  "app.kubernetes.io/instance",
  "app.kubernetes.io/managed-by",
  "app.kubernetes.io/name",
  "app.kubernetes.io/part-of",
  "app.kubernetes.io/version",
  "helm.sh/chart",
];
/** Volumes that OpenShift's profile restricted-v2 admits. */
const RESTRICTED_VOLUMES = [
  ...["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral"],
  ...["persistentVolumeClaim", "projected", "secret"],
];

const find = (manifests: readonly Manifest[], kind: string, name: string) =>
  manifests.find((it) => it.kind === kind && it.metadata.name === name);
const typeOf = ({ name, ...source }: Volume) => Object.keys(source)[0] ?? name;

describe.each(Object.keys(CASES))("the chart with the values of %s", (name) => {
  const manifests = renderedCase(name);
  const own = manifests.filter(({ metadata }) => !metadata.name.endsWith("-extra"));

  it("should be accepted by Kubernetes, without unknown fields", () => {
    expect(problemsOf(manifests)).toEqual([]);
  });

  it("should give every object and pod the standard labels", () => {
    const labelled = own.flatMap((it) => [it.metadata, templateOf(it)?.metadata ?? it.metadata]);
    for (const { labels } of labelled)
      expect(Object.keys(labels ?? {})).toEqual(expect.arrayContaining(STANDARD_LABELS));
  });

  it("should select pods by labels that no upgrade changes, because selectors are immutable", () => {
    const selectors = own.flatMap(({ spec }) => (spec?.template === undefined ? [] : [spec.selector?.matchLabels]));
    const [component, instance, , label] = STANDARD_LABELS;
    for (const selector of selectors.filter((it) => it !== undefined))
      expect(Object.keys(selector).sort()).toEqual([component, instance, label]);
  });

  it("should name only secrets and accounts that exist or that a value names", () => {
    const named = own.filter(({ kind }) => ["Secret", "ServiceAccount"].includes(kind)).map((it) => it.metadata.name);
    const used = containersOf(own).flatMap(({ env = [], pod }) => [
      ...env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? []),
      ...(pod.volumes ?? []).flatMap(({ secret }) => secret?.secretName ?? []),
      ...[pod.serviceAccountName ?? []].flat(),
    ]);
    const others = {
      "everything.yaml": ["backup-passphrase", "first-token", "nats", "rollcall-postgres-app", "rollcall-tls"],
    };
    const missing = used.filter((it) => !named.includes(it));
    expect([...new Set(missing)].sort()).toEqual(Object(others)[name] ?? []);
  });
});

describe("the chart with every option", () => {
  const manifests = renderedCase("everything.yaml");
  const containers = containersOf(manifests);
  const ours = containers.filter(({ args }) => args[0] !== "agent");

  it("should pass on variables, volumes and security contexts to every pod", () => {
    expect(containers).toHaveLength(10);
    for (const { env = [], volumeMounts = [], pod } of containers) {
      expect(env).toContainEqual({ name: "NODE_OPTIONS", value: "--enable-source-maps" });
      expect(volumeMounts).toContainEqual({ name: "authorities", mountPath: "/etc/ssl/authorities", readOnly: true });
      expect(pod.volumes).toContainEqual({ name: "authorities", configMap: { name: "authorities" } });
    }
    for (const { securityContext, pod } of ours) {
      expect(pod.securityContext).toMatchObject({ supplementalGroups: [4000], runAsUser: 65532 });
      expect(securityContext).toMatchObject({ seccompProfile: { type: "Localhost" }, allowPrivilegeEscalation: false });
    }
  });

  it("should pull the digest, with the pull secrets", () => {
    for (const { image, pod } of containers) {
      expect(image).toMatch(/^registry\.example\.org\/rollcall@sha256:[0-9a-f]{64}$/);
      expect(pod).toMatchObject({ imagePullSecrets: [{ name: "pull" }] });
    }
  });

  it("should set priority classes and spread as the values say, completed by the labels of the service", () => {
    const pod = find(manifests, "Deployment", "rollcall-registry")?.spec?.template?.spec;
    expect(pod).toMatchObject({
      priorityClassName: "system-cluster-critical",
      topologySpreadConstraints: [
        {
          topologyKey: "topology.kubernetes.io/zone",
          maxSkew: 2,
          whenUnsatisfiable: "DoNotSchedule",
          labelSelector: { matchLabels: { "app.kubernetes.io/component": "registry" } },
        },
      ],
    });
    const job = manifests.find(({ kind }) => kind === "Job");
    expect(job?.spec?.template?.spec).toMatchObject({ priorityClassName: "system-node-critical" });
  });

  it("should annotate accounts, and bind the agent's own one", () => {
    const annotationsOf = (name: string) => find(manifests, "ServiceAccount", name)?.metadata.annotations;
    expect(annotationsOf("rollcall")).toEqual({ "example.org/role": "control-plane" });
    expect(annotationsOf("fleet-agent")).toEqual({ "example.org/role": "agent" });
    expect(find(manifests, "ClusterRoleBinding", "rollcall-rollcall-agent")).toMatchObject({
      subjects: [{ kind: "ServiceAccount", name: "fleet-agent", namespace: "rollcall" }],
    });
  });

  it("should install further objects, with templates in them evaluated", () => {
    expect(find(manifests, "ConfigMap", "rollcall-extra")?.data?.image).toMatch(/^registry\.example\.org\/rollcall@/);
    expect(find(manifests, "ConfigMap", "text-extra")?.metadata).toMatchObject({ namespace: "rollcall" });
  });
});

describe("the chart on OpenShift", () => {
  const containers = containersOf(renderedCase("openshift.yaml"));

  it("should be admitted by the profile restricted-v2", () => {
    expect(containers.map(({ owner }) => owner)).toEqual(
      expect.arrayContaining([
        "rollcall-api",
        "rollcall-backup",
        "rollcall-health",
        "rollcall-migrate",
        "rollcall-postgres",
        "rollcall-test",
      ]),
    );
    for (const { pod, securityContext = {} } of containers) {
      const ids = ["runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"];
      const fixed = ids.filter((key) => key in (pod.securityContext ?? {}) || key in securityContext);
      expect(fixed).toEqual([]);
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
      expect(securityContext).toMatchObject({ allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } });
      expect([pod.hostNetwork, pod.hostPID, pod.hostIPC]).toEqual([undefined, undefined, undefined]);
      expect((pod.volumes ?? []).map(typeOf).filter((type) => !RESTRICTED_VOLUMES.includes(type))).toEqual([]);
    }
  });
});

describe("the chart for a trial", () => {
  const manifests = renderedCase("trial.yaml");

  it("should create secrets, and keep them after the release is gone", () => {
    const secrets = manifests.filter(({ kind }) => kind === "Secret");
    expect(Object.fromEntries(secrets.map(({ metadata, data = {} }) => [metadata.name, Object.keys(data)]))).toEqual({
      "rollcall-admin-token": ["token"],
      "rollcall-database": ["password", "url"],
      "rollcall-tls": ["ca.crt", "tls.crt", "tls.key"],
    });
    for (const { metadata } of secrets) expect(metadata.annotations).toEqual({ "helm.sh/resource-policy": "keep" });
  });

  it("should not migrate before the database exists", () => {
    expect(find(manifests, "Job", "rollcall-migrate")?.metadata.annotations).toMatchObject({
      "helm.sh/hook": "pre-upgrade",
    });
  });

  it("should check the installation as a hook of `helm test`", () => {
    const pod = find(manifests, "Pod", "rollcall-test");
    expect(pod?.metadata.annotations).toMatchObject({ "helm.sh/hook": "test" });
    const [doctor] = containersOf([pod].filter((it) => it !== undefined));
    expect(doctor?.args).toEqual(["doctor"]);
    expect(doctor?.env).toContainEqual({ name: "ROLLCALL_SERVER", value: "https://rollcall-api.rollcall.svc:7700" });
    // It also connects to replicas at the addresses of their pods, which no certificate contains.
    expect(doctor?.env).toContainEqual({ name: "ROLLCALL_TLS_SERVER_NAME", value: "rollcall-api.rollcall.svc" });
  });
});

describe("the chart's backups", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-backups-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  it("should be written into the volume before old ones are removed", () => {
    const job = find(renderedCase("everything.yaml"), "CronJob", "rollcall-backup");
    expect(job?.spec).toMatchObject({ schedule: "17 3 * * *", concurrencyPolicy: "Forbid" });
    const [backup, removal] = containersOf([job].filter((it) => it !== undefined));
    expect(backup?.args).toEqual(["backup", "/backups", "--passphrase-file=/etc/rollcall/backup/passphrase"]);
    expect(backup?.pod.initContainers?.map(({ name }) => name)).toEqual(["backup"]);
    for (const { pod, volumeMounts } of [backup, removal].filter((it) => it !== undefined)) {
      expect(volumeMounts).toContainEqual({ name: "backups", mountPath: "/backups" });
      expect(pod.volumes).toContainEqual({
        name: "backups",
        persistentVolumeClaim: { claimName: "rollcall-backup" },
      });
    }
  });

  it("should create a volume that outlives the release, or use the one that a value names", () => {
    const claim = find(renderedCase("everything.yaml"), "PersistentVolumeClaim", "rollcall-backup");
    expect(claim?.metadata.annotations).toEqual({ "helm.sh/resource-policy": "keep" });
    expect(claim?.spec).toMatchObject({ storageClassName: "slow", resources: { requests: { storage: "10Gi" } } });
    const manifests = renderedCase("openshift.yaml");
    expect(manifests.filter(({ kind }) => kind === "PersistentVolumeClaim")).toEqual([]);
    const [backup] = containersOf(manifests.filter(({ kind }) => kind === "CronJob"));
    expect(backup?.args).toEqual(["backup", "/backups"]);
    expect(backup?.pod.volumes).toEqual([{ name: "backups", persistentVolumeClaim: { claimName: "archives" } }]);
  });

  it("should keep the newest archives, and no other file of Rollcall", () => {
    const archives = ["28", "29", "30", "31"].map((day) => `rollcall-2026-12-${day}T03-17-00Z.backup`);
    const partial = `${archives[0]}.0a1b2c3d.partial`;
    for (const name of [...archives, partial, "before-upgrade.backup"]) writeFileSync(join(folder, name), "");
    const containers = containersOf(renderedCase("openshift.yaml").filter(({ kind }) => kind === "CronJob"));
    const removal = containers.find(({ name }) => name === "remove-old");
    expect(removal?.command).toEqual(["/usr/lib/rollcall/bin/node"]);
    const args = removal?.args.map((word) => (word === "/backups" ? folder : word)) ?? [];
    execFileSync(process.execPath, args, { env: {} });
    expect(readdirSync(folder).sort()).toEqual(["before-upgrade.backup", ...archives.slice(1)]);
  });
});
