export { putOldDataBack, setOldDataAside } from "./data-directory.ts";
export {
  type EmbeddedPostgres,
  EmbeddedPostgresError,
  type EmbeddedPostgresOptions,
  findEmbeddedPostgres,
  startEmbeddedPostgres,
} from "./embedded-postgres.ts";
