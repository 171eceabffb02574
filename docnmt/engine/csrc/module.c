/* The extension as Python imports it: which levels this processor has. Its functions are called through ctypes, which lets
   other threads run meanwhile. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "accelerator.h"

/* native.py compares them with its own. */
long size_of_matrix(void) { return sizeof(matrix); }
long size_of_memory(void) { return sizeof(memory); }
long size_of_layer(void) { return sizeof(layer); }

static int add_levels(PyObject *module) {
    PyObject *levels;
#ifdef __x86_64__
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512vnni");
    levels = avx512 ? Py_BuildValue("(sss)", "avx512", "avx2", "portable")
             : avx2 ? Py_BuildValue("(ss)", "avx2", "portable")
                    : Py_BuildValue("(s)", "portable");
#else
    levels = Py_BuildValue("(s)", "portable");
#endif
    if (!levels) return -1;
    int failed = PyModule_AddObjectRef(module, "levels", levels); /* best first */
    Py_DECREF(levels);
    return failed;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_levels}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_accelerator", .m_slots = slots};

PyMODINIT_FUNC PyInit__accelerator(void) { return PyModuleDef_Init(&definition); }
