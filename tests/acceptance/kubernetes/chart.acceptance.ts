import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { CASES, MANIFESTS, render, renderAll, toolPath } from "../../../scripts/render-manifests.mjs";
import { containersOf, manifestsIn, rendered } from "../../kubernetes/manifests.ts";
import { workspaceRoot } from "../../support/workspace.ts";

const folder = mkdtempSync(join(tmpdir(), "rollcall-chart-"));
afterAll(() => rmSync(folder, { recursive: true }));

const isInstalled = (tool: string, word: string) => spawnSync(toolPath(tool), [word]).status === 0;
const hasHelm = isInstalled("helm", "version");
const { describe: describeWithHelm } = needs("helm", hasHelm);
const { describe: describeWithBoth } = needs("helm and kubeconform", hasHelm && isInstalled("kubeconform", "-v"));
const everything = join(workspaceRoot, "tests/kubernetes/everything.yaml");
const trial = join(workspaceRoot, "tests/kubernetes/trial.yaml");
const names = Object.keys(MANIFESTS);
/** Paths that programs read over plain HTTP. The sources of the services contain the same list. */
const PAGES = [...["docs/api", "join.sh", "openapi.json", "v1/join/package", "v1/join/packages", "v1/prometheus/sd"]];

/**
 * Validate manifests with the schemas in this repository. Unknown fields and kinds are errors. Returns the problems.
 */
function conform(text: string): string {
  const file = join(folder, "manifests.yaml");
  writeFileSync(file, text);
  const schemas = join(workspaceRoot, "tests/kubernetes/schemas");
  const place = `${schemas}/{{.ResourceKind}}_{{.Group}}_{{.ResourceAPIVersion}}.json`;
  const { stdout, stderr } = spawnSync(
    toolPath("kubeconform"),
    ["-strict", "-summary", "-schema-location", place, file],
    { encoding: "utf8" },
  );
  return `${stdout}${stderr}`;
}

describeWithHelm("the rendered files", () => {
  it("should be what the chart renders (else run `make manifests`)", () => {
    const all = [...renderAll()];
    const stale = all.filter(([path, text]) => readFileSync(join(workspaceRoot, path), "utf8") !== text);
    expect(stale.map(([path]) => path)).toEqual([]);
    expect(all.length).toBe(names.length + Object.keys(CASES).length);
  });

  it.each([
    ["nonsense=1", "nonsense"],
    ["layout=none", "layout"],
    ["health.autoscaling.sesions=5", "sesions"],
    ["tls.certManager.enabled=true", "issuerRef"],
    ["gateway.enabled=true", "gateway"],
    ["defaults.env=null", "env"],
    ["database.trial.replicas=2", "replicas"],
  ])("should refuse the value %s", (setting, why) => {
    expect(() => render({ settings: [setting] })).toThrow(new RegExp(why));
  });
});

describeWithBoth("what the chart renders, against the schemas of Kubernetes", () => {
  it.each(names)("should be valid: %s", (name) => {
    expect(conform(rendered(name))).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
  });

  it("should be valid with every option at once", () => {
    const text = [render({ files: [everything] }), render({ files: [trial] })].join("---\n");
    expect(conform(text)).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
    const kinds = new Set(manifestsIn(text).map(({ kind }) => kind.toLowerCase()));
    const known = readdirSync(join(workspaceRoot, "tests/kubernetes/schemas")).map((name) => name.split("_")[0]);
    expect([...kinds].sort()).toEqual([...new Set(known.filter(Boolean))].map((it) => it?.replace(".json", "")).sort());
  });

  it("should be invalid with an unknown field", () => {
    const wrong = rendered("rollcall.yaml").replaceAll("terminationGracePeriodSeconds:", "terminationGraceSeconds:");
    expect(conform(wrong)).toContain("terminationGraceSeconds");
  });
});

describeWithHelm("routes", () => {
  it("should lead to every service of the API, to the console, and to no other", () => {
    const found = execFileSync("grep", ["-rhE", "^(package|service) ", join(workspaceRoot, "proto")], {
      encoding: "utf8",
    });
    let inPackage = "";
    const services = found.split("\n").flatMap((line) => {
      const [word, name = ""] = line
        .replace(/[;{].*$/, "")
        .trim()
        .split(" ");
      if (word === "package") inPackage = name;
      return word === "service" ? [`${inPackage}.${name}`] : [];
    });
    // Exclude the services for agents, replicas and keepers, because they have other ports.
    const others = ["rollcall.health.v1.HealthService", "rollcall.health.v1.HealthInternalService"];
    const expected = services.filter((it) => !others.includes(it) && !it.startsWith("rollcall.keeper.")).sort();
    const manifests = manifestsIn(render({ files: [everything] }));
    const matches = manifests
      .filter(({ kind }) => kind === "HTTPRoute")
      .flatMap(({ spec }) => spec?.rules ?? [])
      .flatMap((rule) => rule.matches ?? []);
    const pathsOf = (type: string) => matches.flatMap(({ path }) => (path?.type === type ? [path.value.slice(1)] : []));
    // All other paths are pages of the console.
    expect(pathsOf("PathPrefix").sort()).toEqual(["", ...expected]);
    expect(pathsOf("Exact").sort()).toEqual(PAGES);
  });

  it.each(["together", "apart"])("should route an Ingress and a Gateway to the same services: %s", (layout) => {
    const manifests = manifestsIn(render({ files: [everything], settings: [`layout=${layout}`] }));
    const rules = (kind: string, name: string) =>
      manifests.filter((it) => it.kind === kind && it.metadata.name === name).flatMap(({ spec }) => spec?.rules ?? []);
    const byGateway = rules("HTTPRoute", "rollcall").flatMap(({ matches = [], backendRefs = [] }) =>
      matches.map(({ path }) => [path?.value, backendRefs[0]?.name]),
    );
    const paths = (name: string) =>
      rules("Ingress", name).flatMap(({ http }) =>
        (http?.paths ?? []).map(({ path, backend }) => [path, backend.service.name]),
      );
    expect(paths("rollcall").sort()).toEqual(byGateway.sort());
    const registry = layout === "together" ? "rollcall-api" : "rollcall-registry";
    expect(byGateway.filter(([path = ""]) => PAGES.includes(path.slice(1)))).toEqual(
      PAGES.map((path) => [`/${path}`, registry]),
    );
    // The Ingress for gRPC has no pages.
    expect(paths("rollcall-grpc").filter(([path = ""]) => !path.startsWith("/rollcall."))).toEqual([]);
  });
});

describeWithHelm("the console", () => {
  const consoleOf = (...settings: string[]) => {
    const manifests = manifestsIn(render({ settings }));
    return manifests.filter(({ metadata }) => metadata.name.startsWith("rollcall-console"));
  };

  it("should have exactly what every service has", () => {
    expect(
      consoleOf("console.autoscaling.enabled=true").map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    ).toEqual(
      expect.arrayContaining([
        "NetworkPolicy rollcall-console",
        "PodDisruptionBudget rollcall-console",
        "Service rollcall-console",
        "Service rollcall-console-metrics",
        "Deployment rollcall-console",
        "HorizontalPodAutoscaler rollcall-console",
      ]),
    );
    const [container] = containersOf(consoleOf());
    expect(container?.env?.map(({ name }) => name)).not.toContain("ROLLCALL_ADMIN_TOKEN");
    expect(consoleOf("console.enabled=false")).toEqual([]);
  });

  it.each([
    ["together", true, ["https://rollcall-api.rollcall.svc:7700"]],
    ["together", false, ["http://rollcall-api.rollcall.svc:7700"]],
    [
      "apart",
      true,
      ["registry", "health", "admin", "scheduler"].map((it) => `https://rollcall-${it}.rollcall.svc:7700`),
    ],
  ])("should find the services: layout %s, TLS %s", (layout, isSecure, upstreams) => {
    const [container] = containersOf(consoleOf(`layout=${layout}`, `tls.enabled=${isSecure}`));
    const named = container?.env?.filter(({ name }) => name.endsWith("UPSTREAM")).map(({ value }) => value);
    expect(named).toEqual(upstreams);
  });
});

describeWithHelm("the issuer's authority", () => {
  it("should be at the address that every process of the control plane is given", () => {
    const manifests = manifestsIn(render({ settings: ["oidc.caConfigMap=issuer", "config.OIDC.Audience=rollcall"] }));
    const config = manifests.find(({ kind }) => kind === "ConfigMap")?.data?.["rollcall.yaml"] ?? "";
    expect(config).toContain("CAFile: /etc/rollcall/oidc/ca.crt");
    expect(config).toContain("Audience: rollcall");
    const servers = containersOf(manifests).filter(({ args }) => args[0] === "serve");
    for (const { volumeMounts, pod } of servers) {
      expect(volumeMounts).toContainEqual({ name: "oidc", mountPath: "/etc/rollcall/oidc", readOnly: true });
      expect(pod.volumes).toContainEqual({
        name: "oidc",
        configMap: { name: "issuer", items: [{ key: "ca.crt", path: "ca.crt" }] },
      });
    }
  });
});

describeWithHelm("the notes of an installation", () => {
  const notesOf = (setting: string) => {
    const chart = join(workspaceRoot, "deploy/chart");
    const words = ["install", "rollcall", chart, "--dry-run=client", "--namespace", "fleet", "--set", setting];
    const { stdout, stderr } = spawnSync(toolPath("helm"), words, { encoding: "utf8" });
    expect(stderr).not.toContain("Error");
    return /^NOTES:\n([\s\S]*)/m.exec(stdout)?.[1] ?? "";
  };

  it("should warn when the console's pods would count as its users", () => {
    expect(notesOf("console.enabled=true")).toMatch(/Rollcall .* is installed[\s\S]*WARNING: trustedProxies is empty/);
  });

  it("should say how to sign in through a forwarded port", () => {
    const notes = notesOf("adminToken.key=first.token");
    expect(notes).toContain("get secret rollcall-admin-token -o jsonpath='{.data.first\\.token}'");
    expect(notes).toContain("port-forward service/rollcall-api 7700 &");
    expect(notes).toContain("port-forward service/rollcall-console 7701:7700");
    expect(notes).toContain(
      "rollcall login --server https://localhost:7700 --ca-file ca.crt " +
        "--tls-server-name rollcall-api.fleet.svc --token-file admin-token",
    );
  });

  it("should say how to sign in at a host outside the cluster", () => {
    const notes = notesOf("ingress.enabled=true,ingress.host=fleet.example.org,console.enabled=false");
    expect(notes).toContain("rollcall login --server https://fleet.example.org --token-file admin-token");
    expect(notes).not.toContain("port-forward");
    expect(notes).not.toContain("The console");
    // The command line calls over gRPC, which can have a separate host.
    const both = notesOf("ingress.enabled=true,ingress.host=fleet.example.org,ingress.grpcHost=grpc.example.org");
    expect(both).toContain("rollcall login --server https://grpc.example.org --token-file admin-token");
    expect(both).toContain("The console is at https://fleet.example.org.");
  });

  it("should warn about a database for trials", () => {
    expect(notesOf("database.trial.enabled=true")).toContain("the database is for trials only");
    expect(notesOf("layout=apart")).not.toContain("for trials only");
  });

  it.each(["trustedProxies={10.244.0.0/16}", "console.enabled=false"])("should not warn with %s", (setting) => {
    expect(notesOf(setting)).toContain("is installed");
    expect(notesOf(setting)).not.toContain("WARNING");
  });
});

describeWithHelm("the Job that migrates", () => {
  const jobOf = (...settings: string[]) => manifestsIn(render({ settings })).find(({ kind }) => kind === "Job");

  const changes = ["image.tag=other", "migration.activeDeadlineSeconds=60", "database.secretName=other"];

  it("should have another name without Helm when its content differs, because no Job can be changed", () => {
    const nameOf = (...settings: string[]) => jobOf(...(MANIFESTS["rollcall.yaml"] ?? []), ...settings)?.metadata.name;
    const name = nameOf();
    expect(nameOf("registry.replicas=3")).toBe(name);
    const names = changes.map((setting) => nameOf(setting));
    expect(new Set([name, ...names]).size).toBe(1 + changes.length);
  });

  it("should keep its name under Helm, which removes the previous Job by its name, failed or not", () => {
    for (const change of changes) expect(jobOf(change)?.metadata.name).toBe("rollcall-migrate");
    expect(jobOf()?.metadata.annotations).toEqual({
      "helm.sh/hook": "pre-install,pre-upgrade",
      "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    });
  });
});
