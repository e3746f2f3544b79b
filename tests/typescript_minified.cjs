// node typescript_minified.cjs NODE_MODULES FOLDER COPY
// Whether files of TypeScript are the same program in a copy under other names: both without types, by
// esbuild, and with numbers for names that no other file sees, by terser. Prints counts in JSON: of
// files, and of those that are the same; and on standard error where others differ first.
const fs = require("fs"), path = require("path");
const [modules, from, to] = process.argv.slice(2).map((folder) => fs.realpathSync(folder));
const [esbuild, terser] = ["esbuild", "terser"].map((name) => require(path.join(modules, name)));
const mangle = { module: true, nth_identifier: { get: (number) => `$${number}` } };
const minified = async (file) => {
  const options = { loader: "ts", format: "esm", target: "esnext" };
  const { code } = await esbuild.transform(fs.readFileSync(file, "utf8"), options);
  return (await terser.minify(code, { module: true, compress: false, mangle })).code;
};
const files = fs.readdirSync(from, { recursive: true }).filter((file) => /\.[cm]?ts$/.test(file));
(async () => {
  const count = { files: files.length, same: 0, named: 0 };
  for (const file of files) {
    const [plain, other] = await Promise.all([from, to].map((folder) => minified(path.join(folder, file))));
    if (plain === other) count.same += 1;
    else {
      const start = [...plain].findIndex((letter, i) => letter !== other[i]) - 40;
      console.error(file, ...[plain, other].map((code) => code.substr(Math.max(start, 0), 99)));
    }
    count.named += plain.includes("$0");
  }
  console.log(JSON.stringify(count));
})();
