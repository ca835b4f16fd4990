export {
  type EmbeddedPostgres,
  EmbeddedPostgresError,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "./embedded-postgres.ts";
export { findEmbeddedPostgres, putOldDataBack, setOldDataAside } from "./find-server.ts";
