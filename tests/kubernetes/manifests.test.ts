import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { MANIFESTS } from "../../scripts/render-manifests.mjs";
import { loadControlPlaneConfig } from "../../services/rollcall/src/config/control-plane-config.ts";
import { readArguments } from "../../services/rollcall/src/config/read-arguments.ts";
import { SERVE_KEYS } from "../../services/rollcall/src/verbs/serve-help.ts";
import { containersOf, type Manifest, manifestsIn, rendered } from "./manifests.ts";
import { problemsOf } from "./schemas.ts";

const folder = mkdtempSync(join(tmpdir(), "rollcall-chart-"));
afterAll(() => rmSync(folder, { recursive: true }));

const names = Object.keys(MANIFESTS);

describe.each(names)("%s", (name) => {
  const manifests = manifestsIn(rendered(name));
  const ofKind = (kind: string): readonly Manifest[] => manifests.filter((it) => it.kind === kind);
  const servers = containersOf(manifests).filter(({ args }) => args[0] === "serve");

  it("should be valid for Kubernetes, without unknown fields", () => {
    expect(problemsOf(manifests)).toEqual([]);
  });

  it.each([
    ["terminationGracePeriodSeconds", "terminationGraceSeconds"],
    ["unhealthyPodEvictionPolicy", "unhealthyPodsEvictionPolicy"],
    ["maxUnavailable", "mostUnavailable"],
    ["kind: NetworkPolicy", "kind: NetworkPolicies"],
    ["containerPort: 7700", "containerPort: api"],
  ])("should not be with %s written as %s", (right, wrong) => {
    expect(problemsOf(manifestsIn(rendered(name).replaceAll(right, wrong)))).not.toEqual([]);
  });

  it("should give the program only flags and settings that it knows", async () => {
    const [config] = ofKind("ConfigMap");
    const file = join(folder, "rollcall.yaml");
    writeFileSync(file, config?.data?.["rollcall.yaml"] ?? "");
    expect(servers.length).toBeGreaterThan(1);
    for (const { args } of servers) {
      const own = args.filter((word) => !/^--(config|port|probe-port)=/.test(word));
      const { flags, words } = readArguments(own.slice(1), SERVE_KEYS);
      const shell = { env: {}, cwd: folder };
      const loaded = await loadControlPlaneConfig({ shell, file, flags });
      expect([words.length > 0, loaded.warnings]).toEqual([true, []]);
    }
  });

  it("should let no pod gain privileges or write files, and no account do more than get nodes", () => {
    const all = containersOf(manifests);
    for (const { securityContext, pod } of all) {
      expect(securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(pod.automountServiceAccountToken).toBe(false);
      expect(pod.securityContext?.seccompProfile).toEqual({ type: "RuntimeDefault" });
    }
    const rights = ofKind("ClusterRole").flatMap(({ rules = [] }) => rules);
    expect(rights).toEqual([{ apiGroups: [""], resources: ["nodes"], verbs: ["get"] }]);
  });

  it("should give each process enough time to shut down", () => {
    for (const { pod } of servers) expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(5 + 29);
  });

  it("should open the port between replicas only to the control plane", () => {
    const rules = ofKind("NetworkPolicy").flatMap((it) => it.spec?.ingress ?? []);
    const internal = rules.filter(({ ports }) => ports?.some(({ port }) => port === "internal"));
    expect(internal).toHaveLength(1);
    expect(JSON.stringify(internal[0]?.from)).toContain("app.kubernetes.io/component");
  });
});
