import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { workspaceRoot } from "../support/workspace.ts";

// The YAML parser. This package is a dependency of libs/config, which reads configuration files with it.
const { parseAllDocuments }: { parseAllDocuments(text: string): readonly { toJS(): Manifest | null }[] } =
  createRequire(new URL("../../libs/config/package.json", import.meta.url))("yaml");

/** One variable of a container. */
export interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string };
    readonly secretKeyRef?: { readonly name: string; readonly key: string };
  };
}

/** A source of files in a volume. */
export interface FileSource {
  readonly name?: string;
  readonly secretName?: string;
  readonly items?: readonly { readonly key: string; readonly path: string }[];
}

/** A volume of a pod. */
export interface Volume {
  readonly name: string;
  readonly configMap?: FileSource;
  readonly secret?: FileSource;
  readonly hostPath?: { readonly path: string };
  readonly persistentVolumeClaim?: { readonly claimName: string };
  readonly projected?: {
    readonly sources: readonly {
      readonly serviceAccountToken?: { readonly path: string; readonly audience?: string };
      readonly configMap?: FileSource;
    }[];
  };
}

/** The fields of a pod's template that tests read. */
export interface PodSpec {
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostIPC?: boolean;
  readonly initContainers?: readonly Omit<Container, "pod" | "owner">[];
  readonly containers: readonly Omit<Container, "pod" | "owner">[];
  readonly volumes?: readonly Volume[];
}

/** A container, with the spec of its pod. */
export interface Container {
  readonly name: string;
  readonly command?: readonly string[];
  readonly args: readonly string[];
  readonly image: string;
  readonly env?: readonly Variable[];
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly pod: PodSpec;
  /** The name of the Deployment, DaemonSet, Job or CronJob. */
  readonly owner: string;
}

/** The pods of a Deployment, DaemonSet, StatefulSet or Job. */
interface PodTemplate {
  readonly metadata: Manifest["metadata"];
  readonly spec: PodSpec;
}

/** The fields of a manifest that tests read. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly rules?: readonly object[];
  /** For a Pod, its containers and volumes. */
  readonly spec?: Partial<PodSpec> & {
    readonly replicas?: number;
    readonly clusterIP?: string;
    readonly ports?: readonly { readonly port: number }[];
    readonly template?: PodTemplate;
    /** For a CronJob. */
    readonly schedule?: string;
    readonly jobTemplate?: { readonly spec: { readonly template: PodTemplate } };
    readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> };
    readonly ingress?: readonly { readonly ports?: readonly { readonly port: string }[]; readonly from?: object }[];
    readonly rules?: readonly RouteRule[];
  };
}

/** The fields of a rule of an HTTPRoute or an Ingress that tests read. */
export interface RouteRule {
  readonly matches?: readonly { readonly path?: { readonly type: string; readonly value: string } }[];
  readonly backendRefs?: readonly { readonly name: string }[];
  readonly http?: {
    readonly paths: readonly {
      readonly path: string;
      readonly backend: { readonly service: { readonly name: string } };
    }[];
  };
}

/** Parse the manifests in a file. */
export function manifestsIn(text: string): readonly Manifest[] {
  return parseAllDocuments(text)
    .map((it) => it.toJS())
    .filter((it) => it !== null);
}

/** Find the template of the pods of a Deployment, DaemonSet, StatefulSet, Job or CronJob. */
export function templateOf({ spec }: Manifest): PodTemplate | undefined {
  return spec?.template ?? spec?.jobTemplate?.spec.template;
}

/** Find the containers of all Deployments, DaemonSets, StatefulSets, Jobs, CronJobs and Pods. */
export function containersOf(manifests: readonly Manifest[]): readonly Container[] {
  return manifests.flatMap((manifest) => {
    const { containers, ...rest } = manifest.spec ?? {};
    const pod: PodSpec | undefined = templateOf(manifest)?.spec ?? (containers && { ...rest, containers });
    if (pod === undefined) return [];
    const all = [...(pod.initContainers ?? []), ...pod.containers];
    return all.map((it) => ({ ...it, pod, owner: manifest.metadata.name }));
  });
}

/** Read a file of deploy/kubernetes. */
export function rendered(name: string): string {
  return readFileSync(join(workspaceRoot, "deploy/kubernetes", name), "utf8");
}

/** Read the objects that the chart renders for the values in a file of tests/kubernetes. */
export function renderedCase(name: string): readonly Manifest[] {
  return manifestsIn(readFileSync(join(workspaceRoot, "tests/kubernetes/rendered", name), "utf8"));
}

/** Parse a YAML file with one document, such as the chart's values. */
export function readYaml(path: string): Readonly<Record<string, unknown>> {
  const [document] = parseAllDocuments(readFileSync(join(workspaceRoot, path), "utf8"));
  return Object(document?.toJS());
}
