export { formatProblem, formatProblems, type Problem } from "./assignment.ts";
export { convertConfig, printConverted } from "./convert-config.ts";
export { ForeignIndex, type ForeignKey, type ForeignMeaning } from "./foreign.ts";
export { bacalhauNames, HEARTBEAT_INTERVAL_NAMES, INFO_INTERVAL_NAMES } from "./foreign-names.ts";
export { editDistance } from "./key-index.ts";
export { type ConfigKeys, type ConfigValues, defineKeys, environmentName, type KeyDeclaration } from "./keys.ts";
export { listConfig } from "./list-config.ts";
export { type Config, type LoadOptions, loadConfig, type Origin, type RelationProblem } from "./load-config.ts";
export { printDefaultYaml } from "./print-sections.ts";
export { type Environment, environmentVariables } from "./read-environment.ts";
export type { Flags } from "./read-flags.ts";
export type { ConfigFile } from "./read-yaml.ts";
export { readConfigFile } from "./read-yaml.ts";
export {
  type Address,
  address,
  bool,
  bytes,
  checkedText,
  decimal,
  duration,
  formatAddress,
  host,
  int,
  list,
  oneOf,
  optional,
  parseAddress,
  readFurther,
  serverAddress,
  stringMap,
  text,
  url,
  urlProblem,
  type Written,
  writeValue,
} from "./value-types.ts";
export { formatDuration, type ReadDuration, readDuration } from "./values/duration.ts";
export { type ReadQuantity, readBytes, readMillicores } from "./values/quantity.ts";
export { type ReadUrl, readUrl, type UnreadUrl, type UrlRules } from "./values/read-url.ts";
export { readServerAddress, type ServerAddress, shownAddress } from "./values/server-address.ts";
