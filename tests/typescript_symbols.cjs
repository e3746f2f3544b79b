// node typescript_symbols.cjs TYPESCRIPT FOLDER COPY
// Whether each identifier of a folder's files means the same symbol in a copy under other names, to
// TypeScript's own checker. Prints counts in JSON: of files, identifiers, those that were renamed, those
// that are wrong, diagnostics of both, symbols that no other file sees, and those of them that were renamed.
const fs = require("fs"), path = require("path");
const ts = require(process.argv[2]);
const [from, to] = process.argv.slice(3).map((folder) => fs.realpathSync(folder));
const walk = (folder) => fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
  const place = path.join(folder, entry.name);
  return entry.isDirectory() ? walk(place) : [place];
});
const files = walk(from).filter((file) => /\.[cm]?ts$/.test(file));
const inCopy = (file) => path.join(to, path.relative(from, file));
const options = {
  target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, strict: true, noEmit: true, types: [],
  moduleResolution: ts.ModuleResolutionKind.Bundler, allowImportingTsExtensions: true,
};
const programs = [files, files.map(inCopy)].map((each) => ts.createProgram(each, options));
const checkers = programs.map((program) => program.getTypeChecker());
const identifiers = (node, found = []) => {
  if (ts.isIdentifier(node)) found.push(node);
  ts.forEachChild(node, (child) => { identifiers(child, found); });
  return found;
};
const symbolOf = (checker, node) =>
  ts.isShorthandPropertyAssignment(node.parent) && node.parent.name === node
    ? checker.getShorthandAssignmentValueSymbol(node.parent) : checker.getSymbolAtLocation(node);
const F = ts.SymbolFlags;
const OWN = F.Variable | F.Function | F.Class | F.Interface | F.TypeAlias | F.Enum | F.TypeParameter;
const MEMBER = F.Property | F.Method | F.Accessor | F.EnumMember | F.Transient;
const there = new Map(), back = new Map(), own = new Set(), renamed = new Set();
const count = { files: files.length, identifiers: 0, renamed: 0, wrong: 0 };
for (const file of files) {
  const [plain, other] = programs.map((program, i) => program.getSourceFile(i ? inCopy(file) : file));
  const [ours, theirs] = [plain, other].map((source) => identifiers(source));
  if (ours.length !== theirs.length) throw new Error(`${file} has other identifiers`);
  ours.forEach((node, i) => {
    const [symbol, its] = [symbolOf(checkers[0], node), symbolOf(checkers[1], theirs[i])];
    const changed = node.text !== theirs[i].text, isHere = (each) => each.getSourceFile() === plain;
    let same = Boolean(symbol) === Boolean(its);
    if (changed) same &&= Boolean(symbol?.declarations?.some(isHere)) && !(symbol.flags & MEMBER);
    if (symbol && its && !(symbol.flags & MEMBER)) {
      same &&= there.has(symbol) ? there.get(symbol) === its : !back.has(its);
      there.set(symbol, its);
      back.set(its, symbol);
      if (symbol.flags & OWN && !symbol.parent && symbol.declarations.every(isHere) &&
          checkers[0].getExportSymbolOfSymbol(symbol) === symbol) {
        own.add(symbol);
        if (changed) renamed.add(symbol);
      }
    }
    count.identifiers += 1, count.renamed += changed, count.wrong += !same;
    if (!same) console.error(`${file}: ${node.text} is ${theirs[i].text} at ${node.getStart()}`);
  });
}
const diagnostics = programs.map((each) => each.getSyntacticDiagnostics().length + each.getSemanticDiagnostics().length);
console.log(JSON.stringify({ ...count, diagnostics, own: own.size, found: renamed.size }));
