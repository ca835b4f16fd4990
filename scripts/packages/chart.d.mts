/** Write the chart to `out`, as an archive for Helm and as an OCI layout. Returns the names of the two files. */
export function writeChart(
  out: string,
  options: { readonly version: string; readonly timeS: number; readonly work: string },
): Promise<readonly [archive: string, layout: string]>;
