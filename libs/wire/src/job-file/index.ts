export { type FiledJob, type FileProblem, parseJobFile, problemLine, readJobPart } from "./job-file.ts";
export { didYouMean, type Read, readByteCount, readCores, readDurationMs } from "./job-file-values.ts";
export { writeDuration, writeJob } from "./write-job.ts";
