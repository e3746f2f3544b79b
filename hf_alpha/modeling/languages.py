"""Programming languages as `names_in_languages` takes them: kinds of nodes, and queries."""

from collections.abc import Mapping
from typing import NamedTuple


class Language(NamedTuple):
    """How the names of a programming language are found in its trees.

    Attributes:
        grammar: `module:function` of its package.
        names: kinds of nodes that may be names.
        patterns: kind of node -> the field that has what is bound by it; "" for all in it.
        query: tree-sitter's, with the captures that `names_in_languages` explains.
        reserved: what has a meaning of its own although it may be bound.
        globals: what has one outside of functions.
        is_linked: other texts see what the root binds, but for what is `@internal`.
    """

    grammar: str
    names: tuple[str, ...]
    patterns: Mapping[str, str]
    query: str
    reserved: frozenset[str] = frozenset()
    globals: frozenset[str] = frozenset()
    is_linked: bool = False


_SCRIPT = """
[(statement_block) (for_statement) (for_in_statement) (catch_clause) (switch_body) (class)] @scope
[(function_declaration) (generator_function_declaration) (function_expression)
 (generator_function) (arrow_function) (method_definition) (class_static_block)] @scope.function
(function_declaration body: (_) @scope.function.body)
(generator_function_declaration body: (_) @scope.function.body)
(function_expression body: (_) @scope.function.body)
(generator_function body: (_) @scope.function.body)
(arrow_function body: (statement_block) @scope.function.body)
(method_definition body: (_) @scope.function.body)
(class_static_block body: (_) @scope.none)
(method_definition name: (computed_property_name) @scope.outside)
(with_statement body: (_) @scope.barrier)

(variable_declaration (variable_declarator name: (_) @bind.function))
(lexical_declaration (variable_declarator name: (_) @bind))
(for_in_statement kind: "var" left: (_) @bind.function)
(for_in_statement kind: ["let" "const"] left: (_) @bind)
(function_declaration name: (_) @bind.outer.inner)
(generator_function_declaration name: (_) @bind.outer.inner)
(function_expression name: (_) @bind)
(generator_function name: (_) @bind)
(class_declaration name: (_) @bind)
(class name: (_) @bind)
(formal_parameters (_) @bind)
(arrow_function parameter: (_) @bind)
(catch_clause parameter: (_) @bind)

(import_clause (identifier) @bind.keep)
(namespace_import (identifier) @bind.keep)
(import_specifier !alias name: (_) @bind.keep)
(import_specifier name: (_) @other alias: (_) @bind.keep)
(variable_declarator name: (_) @keep
 value: (call_expression function: (identifier) @free (#eq? @free "require")))
(variable_declarator name: (identifier) @keep
 value: (binary_expression left: (identifier) @_left) (#eq? @keep @_left))
(export_statement declaration: (_ name: (_) @keep))
(export_statement declaration: (lexical_declaration (variable_declarator name: (_) @keep)))
(export_statement declaration: (variable_declaration (variable_declarator name: (_) @keep)))
(export_statement (export_clause (export_specifier name: (_) @other)) source: (_))
(export_specifier !alias name: (_) @keep)
(export_specifier alias: (_) @other)
(namespace_export (identifier) @other)
[(shorthand_property_identifier) (shorthand_property_identifier_pattern)] @keep

((identifier) @dynamic (#eq? @dynamic "eval"))
(new_expression constructor: (identifier) @dynamic.root @free (#eq? @free "Function"))
(call_expression function: (identifier) @dynamic.root @free (#eq? @free "Function"))
(member_expression object: (identifier) @free property: (_) @opaque.root
 (#any-of? @free "window" "globalThis" "global" "self" "root" "top" "parent" "frames"))
(member_expression object: (this) property: (_) @opaque.root)
(subscript_expression object: (identifier) @dynamic.root @free
 (#any-of? @free "window" "globalThis" "global" "self"))
"""
_JAVASCRIPT = """
(jsx_opening_element name: (_) @keep)
(jsx_closing_element name: (_) @keep)
(jsx_self_closing_element name: (_) @keep)
"""
_TYPESCRIPT = """
[(function_signature) (function_type) (constructor_type) (call_signature) (construct_signature)
 (method_signature) (abstract_method_signature) (index_signature) (class_declaration)
 (abstract_class_declaration) (interface_declaration) (type_alias_declaration)] @scope
(enum_body) @scope.barrier
(internal_module body: (_) @scope.barrier.function)
(conditional_type) @scope.function
(conditional_type left: (_) @scope.outside)
(conditional_type alternative: (_) @scope.outside)

(function_signature name: (_) @bind.outer.inner)
(index_signature name: (_) @bind)
(class_declaration name: (_) @bind.outer.unsure)
(abstract_class_declaration name: (_) @bind.outer.unsure)
(interface_declaration name: (_) @bind.outer.unsure)
(type_alias_declaration name: (_) @bind.outer.unsure)
(enum_declaration name: (_) @bind.unsure)
(type_parameter name: (_) @bind.unsure)
(mapped_type_clause name: (_) @bind.unsure)
(infer_type . (_) @bind.unsure.function)

(type_identifier) @type
(nested_type_identifier module: (identifier) @type)
(nested_type_identifier module: (nested_identifier) @opaque)
(import_alias (identifier) (identifier) @type)
(import_alias (nested_identifier) @opaque)

; Scripts add to interfaces of the library.
(program (interface_declaration name: (_) @keep))
(required_parameter [(accessibility_modifier) (override_modifier) "readonly"] pattern: (_) @keep)
(optional_parameter [(accessibility_modifier) (override_modifier) "readonly"] pattern: (_) @keep)
(import_require_clause (identifier) @bind.keep)
(import_alias . (identifier) @bind.keep)
(internal_module name: (identifier) @bind.unsure.keep)
(internal_module name: (nested_identifier) @opaque)
(ambient_declaration) @opaque
(export_statement "namespace" (identifier) @other)
(nested_type_identifier name: (_) @other)
(tuple_type [(required_parameter name: (identifier) @other)
 (optional_parameter name: (identifier) @other)
 (required_parameter name: (rest_pattern (identifier) @other))])
"""
_JAVASCRIPT_GLOBALS = """
Array ArrayBuffer BigInt Boolean Buffer DataView Date Error EvalError Event Float32Array
Float64Array Function Infinity Int16Array Int32Array Int8Array Intl JSON Map Math NaN Number Object
Promise Proxy RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String Symbol
SyntaxError TypeError URIError URL Uint16Array Uint32Array Uint8Array WeakMap WeakRef WeakSet
__dirname __filename alert atob btoa clearInterval clearTimeout close confirm console crypto
decodeURI decodeURIComponent define document encodeURI encodeURIComponent escape event exports
fetch frames global globalThis history isFinite isNaN length localStorage location module name
navigator open origin parent parseFloat parseInt performance print process prompt queueMicrotask
require screen self sessionStorage setImmediate setInterval setTimeout status stop structuredClone
top unescape window
"""

_JAVA = """
[(method_declaration) (constructor_declaration) (compact_constructor_declaration)
 (lambda_expression) (block) (constructor_body) (for_statement) (enhanced_for_statement)
 (catch_clause) (try_with_resources_statement) (switch_block) (record_declaration)] @scope
[(class_body) (interface_body) (enum_body) (enum_body_declarations) (annotation_type_body)
 (static_initializer)] @scope.barrier
(static_initializer (block) @scope)

(formal_parameter name: (_) @bind)
(spread_parameter (variable_declarator name: (_) @bind))
(inferred_parameters (identifier) @bind)
(lambda_expression parameters: (identifier) @bind)
(catch_formal_parameter name: (_) @bind)
(enhanced_for_statement name: (_) @bind)
(resource name: (_) @bind.after)
(local_variable_declaration (variable_declarator name: (_) @bind.after))
(instanceof_expression name: (_) @bind.unsure)
(type_pattern (identifier) @bind.unsure)
(record_pattern_component (identifier) @bind.unsure)
(record_declaration parameters: (formal_parameters (formal_parameter name: (_) @bind.keep)))

(method_declaration name: (_) @other)
(constructor_declaration name: (_) @other)
(compact_constructor_declaration name: (_) @other)
(class_declaration name: (_) @other)
(interface_declaration name: (_) @other)
(enum_declaration name: (_) @other)
(record_declaration name: (_) @other)
(annotation_type_declaration name: (_) @other)
(annotation_type_element_declaration name: (_) @other)
(enum_constant name: (_) @other)
(field_declaration (variable_declarator name: (_) @other))
(constant_declaration (variable_declarator name: (_) @other))
(method_invocation name: (_) @other)
(method_reference (_) (identifier) @other .)
(field_access field: (_) @other)
(labeled_statement . (identifier) @other)
(break_statement (identifier) @other)
(continue_statement (identifier) @other)
(annotation name: (_) @other)
(marker_annotation name: (_) @other)
(element_value_pair key: (_) @other)
(record_pattern . (identifier) @other)
(switch_label (identifier) @opaque)
; javac calls a lambda that may be serialized by what it uses.
(cast_expression value: (lambda_expression) @opaque)
(cast_expression value: (parenthesized_expression (lambda_expression) @opaque))
(scoped_identifier (identifier) @other)
"""

_C = r"""
[(function_definition) (compound_statement) (for_statement) (declaration) (type_definition)
 (field_declaration) (parameter_declaration)] @scope

(declaration declarator: [(identifier) (pointer_declarator) (array_declarator)
 (function_declarator) (parenthesized_declarator) (attributed_declarator)] @bind.outer.after)
(init_declarator declarator: (_) @bind.outer.after)
(parameter_declaration declarator: (_) @bind.outer.after)
(parameter_list (identifier) @bind)
(function_definition declarator: (_) @bind.outer)
(type_definition declarator: (_) @bind.outer.keep)
(enumerator name: (_) @bind.keep)

(declaration (storage_class_specifier) @_static declarator: (_) @internal
 (#eq? @_static "static"))
(function_definition (storage_class_specifier) @_static declarator: (_) @internal
 (#eq? @_static "static"))
(compound_statement (declaration (storage_class_specifier) @_extern (#eq? @_extern "extern"))
 @opaque)
(compound_statement (declaration declarator: (function_declarator)) @opaque)
(compound_statement (declaration declarator: (pointer_declarator (function_declarator))) @opaque)

[(struct_specifier name: (_) @other) (union_specifier name: (_) @other)
 (enum_specifier name: (_) @other)]
(attribute_specifier) @opaque
(gnu_asm_expression) @opaque
(preproc_arg) @opaque
(preproc_def name: (_) @opaque)
(preproc_function_def name: (_) @opaque)
(preproc_params (identifier) @other)
(preproc_ifdef name: (_) @opaque)
(preproc_if condition: (_) @opaque)
(preproc_elif condition: (_) @opaque)
(preproc_defined) @opaque
(macro_type_specifier) @opaque

((preproc_include path: (string_literal) @_path) @dynamic.root (#not-match? @_path "[.]h.$"))
(preproc_include path: (identifier)) @dynamic.root
((identifier) @dynamic.root
 (#any-of? @dynamic.root "__func__" "__FUNCTION__" "__PRETTY_FUNCTION__"))
(compound_statement (preproc_include) @dynamic)
((preproc_function_def name: (_) @macro value: (_) @_body)
 (#not-match? @_body "#|[A-Z_][A-Z_0-9]+[ ]*[(]"))
((preproc_function_def name: (_) @macro.unclean value: (_) @_body)
 (#match? @_body "#|[A-Z_][A-Z_0-9]+[ ]*[(]"))
(call_expression function: (identifier)) @called
((call_expression function: (identifier) @_macro) @called.unclean
 (#match? @_macro "^[A-Z_][A-Z_0-9]+$"))
"""

_GO = """
[(function_declaration) (method_declaration) (func_literal) (function_type) (method_elem) (block)
 (if_statement) (for_statement) (expression_switch_statement) (type_switch_statement)
 (select_statement) (expression_case) (type_case) (default_case) (communication_case)] @scope
(function_declaration body: (_) @scope.body)
(method_declaration body: (_) @scope.body)
(func_literal body: (_) @scope.body)
(parameter_declaration type: (_) @scope.outside)
(variadic_parameter_declaration type: (_) @scope.outside)
(_ result: (_simple_type) @scope.outside)

(parameter_declaration name: (_) @bind)
(variadic_parameter_declaration name: (_) @bind)
; the grammar takes the first ones of many names of a type for types
(parameter_list (parameter_declaration !name type: (type_identifier) @bind @scope.none)
 [(parameter_declaration name: (_)) (variadic_parameter_declaration name: (_))])
(short_var_declaration) @bind.after
(range_clause ":=") @bind.after
(receive_statement ":=") @bind.after
(type_switch_statement alias: (_) @bind.unsure)
(var_spec) @bind.after
(const_spec) @bind.after
(type_parameter_declaration name: (_) @bind.keep)
(type_spec name: (_) @bind.keep.after)
(type_alias name: (_) @bind.keep.after)
(function_declaration name: (_) @bind.outer)

(package_clause (_) @other)
(import_spec name: (_) @other)
(qualified_type name: (_) @other)
; of a map it is a value, of a struct a field
(keyed_element key: (literal_element (identifier) @keep))
"""

_JAVASCRIPT_NAMES = (
    "identifier",
    "shorthand_property_identifier",
    "shorthand_property_identifier_pattern",
)
_JAVASCRIPT_PATTERNS = {
    "array_pattern": "",
    "object_pattern": "",
    "rest_pattern": "",
    "pair_pattern": "value",
    "assignment_pattern": "left",
    "object_assignment_pattern": "left",
}
_JAVASCRIPT_WORDS = (
    frozenset({"arguments", "eval", "undefined"}),
    frozenset(_JAVASCRIPT_GLOBALS.split()),
)
LANGUAGES = {
    "javascript": Language(
        "tree_sitter_javascript:language",
        _JAVASCRIPT_NAMES,
        _JAVASCRIPT_PATTERNS,
        _SCRIPT + _JAVASCRIPT,
        *_JAVASCRIPT_WORDS,
    ),
    "typescript": Language(
        "tree_sitter_typescript:language_typescript",
        (*_JAVASCRIPT_NAMES, "type_identifier"),
        {**_JAVASCRIPT_PATTERNS, "required_parameter": "pattern", "optional_parameter": "pattern"},
        _SCRIPT + _TYPESCRIPT,
        *_JAVASCRIPT_WORDS,
    ),
    "go": Language(
        "tree_sitter_go:language",
        ("identifier", "type_identifier", "package_identifier"),
        {
            "expression_list": "",
            "short_var_declaration": "left",
            "range_clause": "left",
            "receive_statement": "left",
            "var_spec": "name",
            "const_spec": "name",
        },
        _GO,
        # and what the grammar reads by its spelling
        frozenset({"_", "make", "new", "true", "false", "nil", "iota"}),
        is_linked=True,
    ),
    "java": Language("tree_sitter_java:language", ("identifier",), {}, _JAVA),
    "c": Language(
        "tree_sitter_c:language",
        ("identifier", "type_identifier"),
        {
            "pointer_declarator": "declarator",
            "function_declarator": "declarator",
            "array_declarator": "declarator",
            "parenthesized_declarator": "",
            "init_declarator": "declarator",
        },
        _C,
        is_linked=True,
    ),
}
"""What a rule may be called -> its language."""
