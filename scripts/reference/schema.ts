import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const OURS = "rollcall.";
/** What agent and keeper of one machine say to each other, which is no API. */
const LOCAL = "rollcall.keeper.v1";
const MOST_BYTES = 64 * 1024 * 1024;

/** A file of the schema, with the comment of each of its parts. */
export interface SchemaFile {
  readonly file: FileDescriptorProto;
  /** The comment before a part, by its path as descriptor.proto counts it; empty where there is none. */
  comment(...path: readonly number[]): string;
}

/** Numbers of fields in descriptor.proto, of which the paths of comments consist. */
export const PART = { message: 4, enum: 5, service: 6, method: 2, field: 2, nested: 3, nestedEnum: 4, value: 2 };

/** Our own schema files, by name. Comments are not in the stubs, so that buf reads proto/ for them. */
export async function readSchema(): Promise<readonly SchemaFile[]> {
  const { stdout } = await promisify(execFile)(`${ROOT}/node_modules/.bin/buf`, ["build", "--output", "-"], {
    cwd: ROOT,
    encoding: "buffer",
    maxBuffer: MOST_BYTES,
  });
  const { file } = fromBinary(FileDescriptorSetSchema, stdout);
  return file.filter((one) => one.package.startsWith(OURS) && one.package !== LOCAL).map(withComments);
}

function withComments(file: FileDescriptorProto): SchemaFile {
  const locations = file.sourceCodeInfo?.location ?? [];
  const comments = new Map(locations.map(({ path, leadingComments }) => [path.join("."), leadingComments.trim()]));
  return { file, comment: (...path) => comments.get(path.join(".")) ?? "" };
}
