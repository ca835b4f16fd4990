/** The files in deploy/kubernetes, and what each sets besides the chart's defaults. */
export const MANIFESTS: Readonly<Record<string, readonly string[]>>;
/** The files in tests/kubernetes/rendered, and what each sets besides its file of values. */
export const CASES: Readonly<Record<string, readonly string[]>>;
/** A tool of .ci/run, or the system's. */
export function toolPath(name: string): string;
/** What the chart makes of values. `files` are files of values, `settings` are KEY=VALUE. */
export function render(values: { readonly settings?: readonly string[]; readonly files?: readonly string[] }): string;
/** The texts of all files of MANIFESTS and CASES, keyed by path in the repository. */
export function renderAll(): ReadonlyMap<string, string>;
