import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { workspaceRoot } from "../support/workspace.ts";

// A dependency of libs/config, which reads configuration files with it.
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

/** One source of the files of a volume. */
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
  readonly projected?: {
    readonly sources: readonly {
      readonly serviceAccountToken?: { readonly path: string; readonly audience?: string };
      readonly configMap?: FileSource;
    }[];
  };
}

/** A pod's template, as far as tests look at it. */
export interface PodSpec {
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext?: { readonly seccompProfile?: object };
  readonly containers: readonly Omit<Container, "pod" | "owner">[];
  readonly volumes?: readonly Volume[];
}

/** A container, with the pod that it is in. */
export interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: readonly Variable[];
  readonly securityContext?: object;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly pod: PodSpec;
  /** The name of the Deployment, DaemonSet or Job. */
  readonly owner: string;
}

/** A manifest, as far as tests look at it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
  readonly rules?: readonly object[];
  readonly spec?: {
    readonly replicas?: number;
    readonly clusterIP?: string;
    readonly ports?: readonly { readonly port: number }[];
    readonly template?: { readonly spec: PodSpec };
    readonly ingress?: readonly { readonly ports?: readonly { readonly port: string }[]; readonly from?: object }[];
    readonly rules?: readonly RouteRule[];
  };
}

/** A rule of an HTTPRoute or of an Ingress, as far as tests look at it. */
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

/** The manifests of a file. */
export function manifestsIn(text: string): readonly Manifest[] {
  return parseAllDocuments(text)
    .map((it) => it.toJS())
    .filter((it) => it !== null);
}

/** The containers of what runs. */
export function containersOf(manifests: readonly Manifest[]): readonly Container[] {
  return manifests.flatMap(({ metadata, spec }) => {
    const pod = spec?.template?.spec;
    return pod === undefined ? [] : pod.containers.map((it) => ({ ...it, pod, owner: metadata.name }));
  });
}

/** One of deploy/kubernetes, as it is kept. */
export function rendered(name: string): string {
  return readFileSync(join(workspaceRoot, "deploy/kubernetes", name), "utf8");
}
